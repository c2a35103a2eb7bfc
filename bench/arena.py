"""Where contenders meet: fresh places, one process per act, and one figure per measurement."""

import asyncio
import contextlib
import json
import math
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import asyncpg

from bench.act import contender
from bench.node import NODE_PEERS
from bench.rows import Row
from bench.tally import Tally
from tests import postgres_server

_ROOT = Path(__file__).parent.parent
# In-process: their documented use is by threads of one process.
_WORKS_WHERE_IT_PINGS = {"persist-queue", "apscheduler"}
# So that all are planned, and whoever keeps time is up and idle, when they are due.
_PLANNED_PER_SECOND = {"duly": 250, "apscheduler": 120, "duly-timekeeper": 10_000}
_TO_BE_IDLE_SECONDS = 5
# A few fire this much earlier: who keeps time has done so before.
_WARM_UPS = 20
_WARM_UP_SECONDS = 2
_IS_OPENED = "SELECT NOT EXISTS (SELECT 1 FROM schedules WHERE fire_at <= {})"


class Arena:
    """`server` is the Postgres whose fresh databases the rows run on, where one is needed."""

    def __init__(self, server: str | None, *, seconds: float, share: float) -> None:
        self._server = server
        self._seconds = seconds
        self._share = share

    def measure(self, row: Row, name: str) -> float:
        """Jobs or slots per second; or milliseconds to entry, from the put (the median) or from when due (the 99th of
        a hundred).
        """
        with tempfile.TemporaryDirectory(prefix="duly-bench-") as folder, self.place(row.store, Path(folder)) as place:
            match row.kind:
                case "fire":
                    return self._fire(row, name, place, Path(folder) / "tally")
                case "open":
                    return self._open(row, name, place, Path(folder) / "tally")
            run(name, "set_up", place=place)
            match row.kind:
                case "enqueue":
                    return _pace(run(name, "enqueue", place=place, callers=row.callers, seconds=self._seconds))
                case "bulk":
                    return _pace(run(name, "fill", place=place, jobs=self._jobs(row, name)))
                case "drain":
                    return self._drain(row, name, place, Path(folder) / "tally")
                case "pickup":
                    return self._pickup(row, name, place, Path(folder) / "tally")

    @contextlib.contextmanager
    def place(self, store: str, folder: Path) -> Iterator[str]:
        if store == "sqlite":
            yield str(folder / "bench.db")
            return
        assert self._server is not None
        with postgres_server.fresh_database(self._server) as url:
            yield url

    def _drain(self, row: Row, name: str, place: str, tally_path: Path) -> float:
        jobs = self._jobs(row, name)
        tally = Tally.create(tally_path)
        run(name, "fill", place=place, jobs=jobs)
        with _workers(name, row.workers, place=place, tally=str(tally_path), stamping=False, jobs=jobs) as alive:
            while tally.entered(row.workers) < jobs:
                alive()
                time.sleep(0.005)
            with asking(place) as ask:
                while ask(_unfinished(name)):
                    alive()
                    time.sleep(0.002)
            return jobs / (time.monotonic_ns() - tally.first_entry_ns(row.workers)) * 1e9

    def _pickup(self, row: Row, name: str, place: str, tally_path: Path) -> float:
        count = self._jobs(row, name)
        tally = Tally.create(tally_path)
        workers = 0 if name in _WORKS_WHERE_IT_PINGS else 1
        with _workers(name, workers, place=place, tally=str(tally_path), stamping=True, jobs=count):
            time.sleep(1.5)  # to connect, and to become idle
            run(name, "ping", place=place, tally=str(tally_path), count=count)
        return statistics.median(tally.pickup_ns(number) or 0 for number in range(count)) / 1e6

    def _fire(self, row: Row, name: str, place: str, tally_path: Path) -> float:
        count = self._jobs(row, name)
        tally = Tally.create(tally_path)
        with _due_at_once(name, count, place, tally_path, warm_ups=_WARM_UPS) as (due_at, alive):
            due_ns = time.monotonic_ns() + int((due_at - time.time()) * 1e9)
            while (entries := tally.entries(count)) is None:
                alive()
                time.sleep(0.05)
        late = sorted(entry - due_ns for entry in entries)
        return late[math.ceil(count * 0.99) - 1] / 1e6

    def _open(self, row: Row, name: str, place: str, tally_path: Path) -> float:
        """Only the end is seen from here: the last batch that was committed."""
        count = self._jobs(row, name)
        Tally.create(tally_path)
        with _due_at_once(name, count, place, tally_path) as (due_at, alive), asking(place) as ask:
            time.sleep(max(due_at - time.time(), 0))
            while not ask(_IS_OPENED.format(due_at * 1_000_000)):
                alive()
                time.sleep(0.002)
            return count / (time.time() - due_at)

    def _jobs(self, row: Row, name: str) -> int:
        return max(int(row.jobs[name] * self._share), 10)


@contextlib.contextmanager
def _due_at_once(
    name: str, count: int, place: str, tally_path: Path, *, warm_ups: int = 0
) -> Iterator[tuple[int, Any]]:
    """So many schedules of the same second, and a process that keeps time, up and idle before it."""
    due_at = math.ceil(time.time() + _TO_BE_IDLE_SECONDS + count / _PLANNED_PER_SECOND[name]) + 2
    run(name, "plan", place=place, due_at=[(due_at, count), (due_at - _WARM_UP_SECONDS, warm_ups)])
    if due_at - time.time() < _TO_BE_IDLE_SECONDS:
        raise RuntimeError(f"{name} took so long to plan {count} schedules that they are due")
    with processes(name, "keep", [{"place": place, "tally": str(tally_path)}]) as alive:
        yield due_at, alive


def run(name: str, what: str, **given: Any) -> Any:
    done = subprocess.run(
        command(name, what, given), cwd=_ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed to {what}:\n{done.stderr[-2_000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _pace(answer: dict[str, float]) -> float:
    return answer["jobs"] / answer["seconds"]


def _workers(name: str, count: int, **given: Any) -> AbstractContextManager[Any]:
    return processes(name, "work", [given | {"worker": worker} for worker in range(count)])


@contextlib.contextmanager
def processes(name: str, what: str, givens: list[dict[str, Any]]) -> Iterator[Any]:
    """They act until this ends; what it yields raises if one of them has ended already."""
    commands = [command(name, what, given) for given in givens]
    with tempfile.TemporaryFile("w+") as errors:
        started = [subprocess.Popen(c, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=errors) for c in commands]

        def alive() -> None:
            if any(process.poll() is not None for process in started):
                errors.seek(0)
                raise RuntimeError(f"{name} ended:\n{errors.read()[-2_000:]}")

        try:
            yield alive
        finally:
            for process in started:
                process.kill()
                process.wait()


def command(name: str, what: str, given: dict[str, Any]) -> list[str]:
    if name in NODE_PEERS:
        return NODE_PEERS[name].command(what, given)
    return [sys.executable, "-m", "bench.act", name, what, json.dumps(given)]


def _unfinished(name: str) -> str:
    return NODE_PEERS[name].unfinished if name in NODE_PEERS else contender(name).unfinished


@contextlib.contextmanager
def asking(place: str) -> Iterator[Any]:
    """Asks one question at a time, whatever the store."""
    if "://" not in place:
        with contextlib.closing(sqlite3.connect(place)) as connection:
            yield lambda question: connection.execute(question).fetchone()[0]
        return
    loop = asyncio.new_event_loop()
    link = loop.run_until_complete(asyncpg.connect(place))
    try:
        yield lambda question: loop.run_until_complete(link.fetchval(question))
    finally:
        loop.run_until_complete(link.close())
        loop.close()
