"""Where contenders meet: fresh places, one process per act, and one figure per measurement."""

import asyncio
import contextlib
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg

from bench import graphile
from bench.act import contender
from bench.rows import Row
from bench.tally import Tally
from tests import postgres_server

_ROOT = Path(__file__).parent.parent
# In-process: their documented use is by threads of one process.
_WORKS_WHERE_IT_PINGS = {"persist-queue", "apscheduler"}


class Arena:
    """`server` is the Postgres whose fresh databases the rows run on, where one is needed."""

    def __init__(self, server: str | None, *, seconds: float, share: float) -> None:
        self._server = server
        self._seconds = seconds
        self._share = share

    def measure(self, row: Row, name: str) -> float:
        """Jobs per second, or milliseconds from put to entry (the median)."""
        with tempfile.TemporaryDirectory(prefix="duly-bench-") as folder, self._place(row, Path(folder)) as place:
            _run(name, "set_up", place=place)
            match row.kind:
                case "enqueue":
                    return _pace(_run(name, "enqueue", place=place, callers=row.callers, seconds=self._seconds))
                case "bulk":
                    return _pace(_run(name, "fill", place=place, jobs=self._jobs(row, name)))
                case "drain":
                    return self._drain(row, name, place, Path(folder) / "tally")
                case "pickup":
                    return self._pickup(row, name, place, Path(folder) / "tally")

    @contextlib.contextmanager
    def _place(self, row: Row, folder: Path) -> Iterator[str]:
        if row.store == "sqlite":
            yield str(folder / "bench.db")
            return
        assert self._server is not None
        with postgres_server.fresh_database(self._server) as url:
            yield url

    def _drain(self, row: Row, name: str, place: str, tally_path: Path) -> float:
        jobs = self._jobs(row, name)
        tally = Tally.create(tally_path)
        _run(name, "fill", place=place, jobs=jobs)
        with _workers(name, row.workers, place=place, tally=str(tally_path), stamping=False, jobs=jobs) as alive:
            while tally.entered(row.workers) < jobs:
                alive()
                time.sleep(0.005)
            with _asking(place) as ask:
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
            _run(name, "ping", place=place, tally=str(tally_path), count=count)
        return statistics.median(tally.pickup_ns(number) or 0 for number in range(count)) / 1e6

    def _jobs(self, row: Row, name: str) -> int:
        return max(int(row.jobs[name] * self._share), 10)


def _run(name: str, what: str, **given: Any) -> Any:
    done = subprocess.run(
        _command(name, what, given), cwd=_ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed to {what}:\n{done.stderr[-2_000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _pace(answer: dict[str, float]) -> float:
    return answer["jobs"] / answer["seconds"]


@contextlib.contextmanager
def _workers(name: str, count: int, **given: Any) -> Iterator[Any]:
    commands = [_command(name, "work", given | {"worker": worker}) for worker in range(count)]
    with tempfile.TemporaryFile("w+") as errors:
        processes = [subprocess.Popen(c, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=errors) for c in commands]

        def alive() -> None:
            if any(process.poll() is not None for process in processes):
                errors.seek(0)
                raise RuntimeError(f"a worker of {name} ended:\n{errors.read()[-2_000:]}")

        try:
            yield alive
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _command(name: str, what: str, given: dict[str, Any]) -> list[str]:
    if name == graphile.NAME:
        return graphile.command(what, given)
    return [sys.executable, "-m", "bench.act", name, what, json.dumps(given)]


def _unfinished(name: str) -> str:
    return graphile.UNFINISHED if name == graphile.NAME else contender(name).unfinished


@contextlib.contextmanager
def _asking(place: str) -> Iterator[Any]:
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
