"""persist-queue's acknowledged queue on SQLite: threads of one process, as its documentation has it."""

import threading
from typing import Any

import persistqueue

from bench.contender import Contender, Duty, Pace, enqueue_in_threads, fill_in_turn, ping_in_turn
from bench.tally import Tally


class PersistQueue(Contender):
    """Two commits per job: taken, acknowledged."""

    packages = ("persist-queue",)
    settings = "SQLiteAckQueue, multithreading=True, WAL, synchronous=FULL; pickup within one process"
    unfinished = "SELECT EXISTS (SELECT 1 FROM ack_queue_default WHERE status <> '5')"

    def set_up(self, place: str) -> None:
        _queue(place)

    def enqueue(self, place: str, callers: int, seconds: float) -> Pace:
        queue = _queue(place)
        return enqueue_in_threads(lambda n: queue.put({"n": n}), callers, seconds)

    def fill(self, place: str, jobs: int) -> Pace:
        queue = _queue(place)
        return fill_in_turn(lambda n: queue.put({"n": n}), jobs)

    def work(self, place: str, duty: Duty) -> None:
        _serve(_queue(place), duty)

    def ping(self, place: str, tally: Tally, count: int) -> None:
        queue = _queue(place)
        duty = Duty(tally, 0, stamping=True)
        threading.Thread(target=_serve, args=(queue, duty), daemon=True).start()
        ping_in_turn(lambda n: queue.put({"n": n}), tally, count)


def _serve(queue: Any, duty: Duty) -> None:
    while True:
        item = queue.get(raw=True)
        duty.enter(item["data"]["n"])
        queue.ack(id=item["pqid"])


def _queue(place: str) -> Any:
    folder, _, file = place.rpartition("/")
    queue = persistqueue.SQLiteAckQueue(folder, db_file_name=file, multithreading=True)
    for connection in {queue._getter, queue._putter}:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    return queue
