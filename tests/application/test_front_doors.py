"""What front doors ask of the use cases behind them, on a database in memory."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from duly import every
from duly.bootstrap import Queue, Settings
from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner, PoolName, ScheduleId, Token
from duly.domain.jobs import COMPLETED
from duly.domain.requests import Claimed, Request
from duly.domain.runs import RunStatus
from duly.domain.schedules import Target
from duly.domain.sessions import Report, Wanted


def on_a_queue(scenario: Callable[[Queue], Awaitable[None]]) -> None:
    async def run() -> None:
        queue = await Queue.open(Settings(database_url=":memory:"))
        try:
            await scenario(queue)
        finally:
            await queue.close()

    asyncio.run(run())


@pytest.mark.req("GRAPH-12")
def test_a_list_of_schedules_can_show_each_ones_last_run() -> None:
    async def scenario(queue: Queue) -> None:
        for name in ("ran", "never"):
            await queue.schedules.create(
                schedule_id=name, owner="ann", cadence=every("1h"), target=Target(kind="work", pool=PoolName("graphs"))
            )
        await queue.schedules.run_now("ran", owner="ann")
        listed = [schedule.id for schedule in await queue.schedules.list(owner="ann")]
        assert await queue.runs.last_of(listed) == {}, "what waits has not run"
        session = await queue.sessions.open(name="hand")
        (job,) = (
            await queue.sessions.exchange(session.id, token=Token(1), wanted={PoolName("graphs"): Wanted(1)})
        ).started
        assert [run.status for run in (await queue.runs.last_of(listed)).values()] == [RunStatus.RUNNING]
        await queue.sessions.exchange(session.id, token=Token(2), reports=[Report(job, COMPLETED)], wanted={})

        last = await queue.runs.last_of(listed)

        assert {name: run.status for name, run in last.items()} == {"ran": RunStatus.SUCCESS}

    on_a_queue(scenario)


@pytest.mark.req("GRAPH-12", error=True)
def test_more_schedules_than_a_page_holds_are_refused() -> None:
    async def scenario(queue: Queue) -> None:
        with pytest.raises(InvalidInput):
            await queue.runs.last_of([ScheduleId("s")] * 1_001)

    on_a_queue(scenario)


def test_what_a_claim_draws_serves_as_id_and_key() -> None:
    async def scenario(queue: Queue) -> None:
        request = Request(owner=Owner("ann"), route="POST /schedules", key="k", hash="h")
        claimed = await queue.requests.claim(request)

        assert isinstance(claimed, Claimed)
        assert len(claimed.draw) == 32
        assert int(claimed.draw, 16)
        assert 0 <= claimed.token < 2**63

    on_a_queue(scenario)


def test_a_store_that_does_not_answer_is_not_ready() -> None:
    async def scenario(queue: Queue) -> None:
        await queue.storage.close()

        readiness = await queue.health.readiness()

        assert not readiness.is_ready
        assert readiness.problems[0].startswith("the store does not answer: ")

    on_a_queue(scenario)
