"""Huey on SQLite."""

from typing import Any

from huey import SqliteHuey
from huey.consumer import Consumer

from bench.contender import Contender, Duty, Pace, enqueue_in_threads, fill_in_turn, ping_in_turn
from bench.tally import Tally


class HueyQueue(Contender):
    """Deletes a job when it takes it: one commit per job, and a worker that dies loses what it runs."""

    packages = ("huey",)
    settings = "WAL, fsync=True (synchronous=FULL), 1 thread, results of None not stored, other settings as they come"
    unfinished = "SELECT EXISTS (SELECT 1 FROM task)"

    def set_up(self, place: str) -> None:
        _huey(place)

    def enqueue(self, place: str, callers: int, seconds: float) -> Pace:
        return enqueue_in_threads(_task(_huey(place), None), callers, seconds)

    def fill(self, place: str, jobs: int) -> Pace:
        return fill_in_turn(_task(_huey(place), None), jobs)

    def work(self, place: str, duty: Duty) -> None:
        huey = _huey(place)
        _task(huey, duty)
        Consumer(huey, workers=1, periodic=False).run()

    def ping(self, place: str, tally: Tally, count: int) -> None:
        ping_in_turn(_task(_huey(place), None), tally, count)


def _huey(place: str) -> Any:
    return SqliteHuey(filename=place, fsync=True)


def _task(huey: Any, duty: Duty | None) -> Any:
    def noop(n: int) -> None:
        if duty is not None:
            duty.enter(n)

    return huey.task()(noop)
