"""A worker looks for jobs when a hint concerns it, and lets the rest go by: each look is a claim."""

import asyncio
from typing import Any

import pytest

from duly.domain.sessions import ClaimedJob
from duly.worker.worker import Worker
from tests.adapters.worker.working import POOL, working

TURNS = 100


@pytest.mark.parametrize(
    ("topic", "looks"),
    [("execution:run-1", 0), ("schedules", 0), ("pool:elsewhere", 0), (f"pool:{POOL}", 1), ("due", 1), ("*", 1)],
)
def test_a_worker_looks_when_a_hint_concerns_it(topic: str, looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    exchange = Worker._exchange

    async def counting(self: Worker, *given: Any) -> None:
        nonlocal looked
        await exchange(self, *given)
        looked += 1

    monkeypatch.setattr(Worker, "_exchange", counting)

    async def scenario() -> int:
        def nothing(_: ClaimedJob) -> None: ...

        async with working({"work": nothing}) as (queue, _):
            await _turns_until_still(lambda: looked)
            before = looked
            queue.storage.wakeups.announce(frozenset({topic}))
            await _turns_until_still(lambda: looked)
            return looked - before

    assert asyncio.run(scenario()) == looks


async def _turns_until_still(count: Any) -> None:
    """In memory a look takes a few turns of the loop, and no time."""
    seen = -1
    while count() != seen or not seen:
        seen = count()
        for _ in range(TURNS):
            await asyncio.sleep(0)
