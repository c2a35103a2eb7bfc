"""Worker processes to start, stop, pause and kill, none of which outlives its test."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from duly.bootstrap import Queue
from duly.domain.ids import PoolName
from duly.domain.pools import Pool
from duly.settings import Settings
from tests.acceptance.checker import Facts, facts_of
from tests.acceptance.journal import JournalReader, boottime

_ROOT = Path(__file__).parents[2]
POLL_SECONDS = 0.02


async def until(fact: Callable[[], bool], *, within: float, what: str) -> None:
    """Waits for a fact, by looking; a fact that does not come is a failure."""
    deadline = boottime() + within
    while not fact():
        assert boottime() < deadline, f"not within {within:g} s: {what}"
        await asyncio.sleep(POLL_SECONDS)


async def until_in(database_url: str, fact: Callable[[Facts], bool], *, within: float, what: str) -> None:
    """The same for a fact of the database."""
    deadline = boottime() + within
    while not fact(await facts_of(database_url)):
        assert boottime() < deadline, f"not within {within:g} s: {what}"
        await asyncio.sleep(POLL_SECONDS)


@contextlib.asynccontextmanager
async def opened(database_url: str, pools: Mapping[PoolName, int]) -> AsyncIterator[Queue]:
    queue = await Queue.open(Settings(database_url=database_url))
    try:
        for name, slots in pools.items():
            await queue.pools.define(Pool(name=name, slots=slots))
        yield queue
    finally:
        await queue.close()


class Workers:
    """Every process it started is gone when it is left, however that happens."""

    def __init__(self, database_url: str, folder: Path, *, lease_ms: int, fsync: bool = False) -> None:
        self._folder = folder
        self._path = folder / "journal"
        self._fsync = fsync
        self._environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}",
            "DULY_DATABASE_URL": database_url,
            "DULY_LEASE_MS": str(lease_ms),
        }
        self._started: list[subprocess.Popen[bytes]] = []
        self.journal = JournalReader(self._path)
        self.killed: dict[int, float] = {}

    def start(self, pools: Mapping[PoolName, int], *options: str) -> int:
        command = [sys.executable, "-m", "tests.acceptance.worker_process", "--journal", str(self._path)]
        command += [f"--pool={name}={executors}" for name, executors in pools.items()]
        command += ["--fsync", *options] if self._fsync else options
        with (self._folder / f"stderr-{len(self._started)}").open("wb") as stderr:
            process = subprocess.Popen(command, env=self._environment, cwd=_ROOT, stdin=subprocess.PIPE, stderr=stderr)
        self._started.append(process)
        return process.pid

    @property
    def alive(self) -> list[int]:
        return [process.pid for process in self._started if process.poll() is None]

    def kill(self, pid: int) -> None:
        """As `kill -9`; the moment noted is the last one at which it may have done anything."""
        process = self._process(pid)
        process.kill()
        process.wait()
        self.killed[pid] = boottime()

    def send(self, pid: int, signal_: signal.Signals) -> None:
        self._process(pid).send_signal(signal_)

    async def exit_code(self, pid: int, *, within: float) -> int:
        process = self._process(pid)
        await until(lambda: process.poll() is not None, within=within, what=f"worker {pid} ends")
        return process.returncode

    async def stop_all(self, *, within: float = 30.0) -> None:
        """As an operator would: each ends by itself, with success, and had nothing to complain of."""
        await self.all_ready()
        stopped = self.alive
        for pid in stopped:
            self.send(pid, signal.SIGTERM)
        codes = {pid: await self.exit_code(pid, within=within) for pid in stopped}
        assert set(codes.values()) <= {0}, f"{codes}\n{self.complaints()}"
        assert not self.complaints(), self.complaints()

    async def all_ready(self, *, within: float = 60.0) -> None:
        def ready() -> bool:
            self._require_alive()
            return set(self.alive) <= {line.pid for line in self.journal.noted("ready")}

        await until(ready, within=within, what="all workers are ready")

    def complaints(self) -> str:
        return "".join(path.read_text() for path in sorted(self._folder.glob("stderr-*")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if error is not None and self.complaints():
            error.add_note(f"workers said:\n{self.complaints()[-4000:]}")

    def _require_alive(self) -> None:
        """Whoever ended without being told to has failed."""
        fallen = {p.pid: p.returncode for p in self._started if p.poll() not in (None, 0) and p.pid not in self.killed}
        assert not fallen, f"workers fell: {fallen}\n{self.complaints()}"

    def _process(self, pid: int) -> "subprocess.Popen[bytes]":
        return next(process for process in self._started if process.pid == pid)
