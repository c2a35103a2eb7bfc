"""A machine with a store, whose time and luck come from one seed; what runs on it is up to whoever builds on this."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from random import Random

import apsw

from duly.ports.storage import Storage
from duly.storage.migrations import load_migrations
from duly.storage.sqlite.arrivals import Arrivals
from duly.storage.sqlite.hot_path import SqliteHotPath
from duly.storage.sqlite.storage import SqliteStorage
from duly.storage.statements import Statement, load_statements
from duly.storage.transaction import SqlTransaction
from tests.simulation.faults import Weather
from tests.simulation.laws import LawBroken
from tests.simulation.virtual_time import NothingLeftToDo, VirtualClock, VirtualLoop

SOME_DAY = 1_800_000_000_000_000

Mutate = Callable[[dict[str, Statement], apsw.Connection], None]


class Machine(ABC):
    """Storage, queue, worker and timekeeper are the real ones; only time, chance and the way to the store are not."""

    def __init__(self, random: Random, *, mutate: Mutate | None = None, start: int = SOME_DAY) -> None:
        self.random = random
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop, start=start)
        self.dice = SeededDice(random)
        self.weather = Weather(
            crash=random.choice([0, 0.005, 0.02]),
            unavailable=random.choice([0, 0.02, 0.1]),
            answer_lost=random.choice([0, 0.02, 0.1]),
            rerun=random.choice([0, 0.1]),
            hint_lost=random.choice([0, 0.3, 1.0]),
            slow=random.choice([0, 0.1, 0.4]),
        )
        self.trace: list[str] = []
        self.broken: LawBroken | None = None
        self._mutate = mutate

    def run(self) -> None:
        """Raises LawBroken, naming the law."""
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._run())
        except NothingLeftToDo:
            raise LawBroken("the machine stands still with work left") from None
        finally:
            self._end_everything()

    async def _run(self) -> None:
        self._open()
        await self._live()
        if self.broken:
            raise self.broken
        await self._judge()

    @abstractmethod
    async def _live(self) -> None:
        """Everything that happens, until all of it has healed and come to rest."""

    @abstractmethod
    async def _judge(self) -> None:
        """What must hold in the end; not asked for when a law was broken on the way."""

    @abstractmethod
    def _kill_everyone(self) -> None: ...

    def note(self, text: str) -> None:
        self.trace.append(f"{self.clock.elapsed()} {text}")

    def break_law(self, broken: LawBroken) -> None:
        """Whoever committed goes on, as a real process would; the machine stops as soon as it looks."""
        self.note(f"broken: {broken}")
        self.broken = self.broken or broken

    def _open(self) -> None:
        statements = dict(load_statements("sqlite"))
        storage = SqliteStorage(
            ":memory:",
            clock=self.clock,
            statements=statements,
            migrations=load_migrations(files("duly.storage.sqlite").joinpath("migrations")),
            begin=lambda executor: SqlTransaction(executor, SqliteHotPath()),
            inline=True,
            arrivals=Arrivals(statements),
        )
        self.storage: Storage = storage
        self.database = storage._connection
        if self._mutate:
            self._mutate(statements, self.database)

    def _heal(self) -> None:
        self.note("healed")
        self.clock.set_off_by(0)
        calm = Weather()
        for name in Weather.__slots__:
            setattr(self.weather, name, getattr(calm, name))

    def _end_everything(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        self._kill_everyone()
        for task in tasks:
            task.cancel()
        with suppress(NothingLeftToDo):
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        with suppress(NothingLeftToDo):
            self.loop.run_until_complete(self.storage.close())
        asyncio.set_event_loop(None)
        self.loop.close()


class SeededDice:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._count = 0

    def new_id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:08d}"

    def fraction(self) -> float:
        return self._random.random()

    def secret(self) -> str:
        return self._random.randbytes(32).hex()
