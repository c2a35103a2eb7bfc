"""Worker processes to start, stop, pause and kill, none of which outlives its test."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from duly.bootstrap import Queue
from duly.domain.ids import PoolName
from duly.domain.pools import Pool
from duly.ports.clock import Clock
from duly.settings import Settings
from duly.storage.sqlite.storage import SqliteStorage
from duly.system.dice import SystemDice
from tests.acceptance.checker import Facts, facts_of
from tests.acceptance.crash_points import CrashPoint
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


async def side_by_side(*scenarios: Coroutine[Any, Any, None]) -> None:
    """Whichever fails ends the others."""
    async with asyncio.TaskGroup() as group:
        for scenario in scenarios:
            group.create_task(scenario)


@contextlib.asynccontextmanager
async def opened(
    database_url: str, pools: Mapping[PoolName, int], *, clock: Clock | None = None
) -> AsyncIterator[Queue]:
    """`clock` is for SQLite, where it is not the database's."""
    settings = Settings(database_url=database_url)
    if clock is not None and not database_url.startswith("postgresql://"):
        queue = Queue.on(await SqliteStorage.open(database_url, clock=clock), SystemDice(), settings)
    else:
        queue = await Queue.open(settings)
    try:
        for name, slots in pools.items():
            await queue.pools.define(Pool(name=name, slots=slots))
        yield queue
    finally:
        await queue.close()


class Workers:
    """Every process it started is gone when it is left, however that happens."""

    def __init__(
        self,
        database_url: str,
        folder: Path,
        *,
        lease_ms: int,
        fsync: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._path = folder / "journal"
        self._fsync = fsync
        self._environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}",
            "DULY_DATABASE_URL": database_url,
            "DULY_LEASE_MS": str(lease_ms),
            **(environment or {}),
        }
        self._started: list[subprocess.Popen[bytes]] = []
        self.journal = JournalReader(self._path)
        self.killed: dict[int, float] = {}

    def start(self, pools: Mapping[PoolName, int], *options: str) -> int:
        return self._start("tests.acceptance.worker_process", pools, *options)

    def start_keeper(
        self, pools: Mapping[PoolName, int], *, crash_at: CrashPoint | None = None, beat_ms: int | None = None
    ) -> int:
        """One that keeps time, and works where it is given pools; it notes which statements it runs."""
        arguments = [f"--statements={self._folder / 'statements'}"]
        arguments += [f"--crash-at={crash_at}"] if crash_at else []
        arguments += [f"--beat-ms={beat_ms}"] if beat_ms else []
        return self._start("tests.acceptance.keeper_process", pools, *arguments)

    def _start(self, module: str, pools: Mapping[PoolName, int], *arguments: str) -> int:
        command = [sys.executable, "-m", module, "--journal", str(self._path), *arguments]
        command += [f"--pool={name}={executors}" for name, executors in pools.items()]
        command += ["--fsync"] if self._fsync else []
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

    def crashed(self, pid: int) -> bool:
        """Whether it has ended itself as `kill -9` would; noted like a kill."""
        if self._process(pid).poll() != -signal.SIGKILL:
            return False
        self.killed.setdefault(pid, boottime())
        return True

    @property
    def statements(self) -> list[str]:
        """Of keepers so far, in order of their first run."""
        path = self._folder / "statements"
        return list(dict.fromkeys(path.read_text().split())) if path.exists() else []

    def send(self, pid: int, signal_: signal.Signals) -> None:
        self._process(pid).send_signal(signal_)

    @property
    def environment(self) -> dict[str, str]:
        return dict(self._environment)

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
