"""Schedules of every second, whose slots anybody can count."""

import asyncio
from collections.abc import Sequence

from duly import every
from duly.bootstrap import Queue
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND
from duly.domain.policies import Policies
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import Target
from tests.acceptance import ledger_checker
from tests.acceptance.journal import boottime
from tests.acceptance.ledger_checker import Ledger, ledger_of

WIDE = PoolName("wide")
LIMITS = {WIDE: 1_000}
EXECUTORS = {WIDE: 40}
OWNER = "ann"
AT_ONCE_AND_ALWAYS = RetryPolicy(max_attempts=1_000, backoff_ms=0)


class EverySecond:
    """Each has its first slot in the second after it was made, and its last in the one in which it was paused."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._begun: dict[str, int] = {}

    async def create(
        self,
        name: str,
        policies: Policies,
        *,
        retry: RetryPolicy = AT_ONCE_AND_ALWAYS,
        work_ms: Sequence[int] = (0,),
    ) -> None:
        """`work_ms` is how long a run takes, by the second of its slot."""
        target = Target(kind="work", params={"work_ms": list(work_ms)}, pool=WIDE, retry=retry)
        made = await self._queue.schedules.create(
            schedule_id=name, owner=OWNER, cadence=every("1s"), target=target, policies=policies
        )
        self._begun[name] = made.created_at // SECOND

    async def pause(self) -> dict[str, range]:
        """Answers which slots each had."""
        planned = {}
        for name, begun in self._begun.items():
            paused = await self._queue.schedules.pause(name, owner=OWNER)
            planned[name] = range(begun + 1, max(paused.updated_at // SECOND, paused.opened_through) + 1)
        return planned


async def until_all_ended(database_url: str, *, within: float) -> Ledger:
    """Nothing is in flight, and nothing is owed."""
    deadline = boottime() + within
    while True:
        ledger = await ledger_of(database_url)
        left = [*ledger_checker.in_flight(ledger), *ledger.arrears]
        if not left:
            return ledger
        assert boottime() < deadline, f"not within {within:g} s: all runs end; left are {left[:5]}"
        await asyncio.sleep(0.2)


async def until_opened(database_url: str, name: str, slot: int, *, within: float) -> Ledger:
    """A schedule's slots are open through a second."""
    deadline = boottime() + within
    while True:
        ledger = await ledger_of(database_url)
        opened = next(schedule.opened_through // SECOND for schedule in ledger.schedules if schedule.id == name)
        if opened >= slot:
            return ledger
        assert boottime() < deadline, f"not within {within:g} s: {name} is open through {slot}; it is through {opened}"
        await asyncio.sleep(0.1)
