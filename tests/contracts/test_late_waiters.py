"""A worker that lost its run says late that it waits, on every store: whoever took its place is woken all the same."""

import asyncio

import pytest

from duly.domain.ids import JobId
from duly.domain.jobs import Ending, JobStatus, Suspended
from duly.domain.workflows import CallBack
from tests.contracts.graphs import PatientClock
from tests.contracts.test_call_backs import STARTED, SUCCESS, Firm, Hosted, firm
from tests.receiver import Manner, answers, never_answers, receiving, resets


@pytest.fixture
def world(store: str, place: str) -> Hosted:
    world = Hosted(store, place)
    world.clock = PatientClock()
    return world


async def waits_after_a_rescue(world: Hosted, home: Firm) -> tuple[JobId, str]:
    """The retry of a run whose worker was given up for lost, and says that it waits only now."""
    await home.launch()
    slow, lost = home.hand, await home.claim()
    answer = await home.handled(lost)
    assert isinstance(answer, Suspended)
    world.clock.advance(61)
    assert await world.queue.sessions.rescue_expired()
    world.clock.advance(10)
    home.hand = await world.hand()
    retry = await home.claim()
    assert (retry.chain, retry.id != lost.id) == (lost.chain, True)
    assert await home.handled(retry) == answer
    await world.queue.sessions.suspend(home.hand.session, retry, answer.execution)
    await world.queue.sessions.suspend(slow.session, lost, answer.execution)
    return retry.id, answer.execution


@pytest.mark.req("CRON-10")
async def test_a_call_back_wakes_the_run_that_took_over(world: Hosted) -> None:
    home = await firm(world)
    job_id, run_id = await waits_after_a_rescue(world, home)

    await world.queue.dag_runs.call_back(run_id, SUCCESS, owner="ann")

    assert (await world.live(job_id)).run_at <= world.clock.now()
    assert (await home.goes_on()).status is JobStatus.COMPLETED


@pytest.mark.req("CRON-10")
async def test_cancelling_the_run_that_took_over_ends_its_execution(world: Hosted) -> None:
    home = await firm(world)
    job_id, run_id = await waits_after_a_rescue(world, home)

    await world.queue.jobs.cancel(job_id, reason="no longer wanted")

    rows = await world.rows("SELECT run_id, status, error_code FROM execution_requests")
    assert rows == [(run_id, "done", "cancelled")]


@pytest.mark.req("CRON-10")
@pytest.mark.parametrize("answer", [answers(502), resets], ids=["an error", "nothing"])
async def test_an_end_that_was_said_stands_whatever_becomes_of_the_answer_to_the_call(
    world: Hosted, answer: Manner
) -> None:
    """Whoever calls back and is told that it was heard has said how the run ended."""

    async def calls_back_first(writer: asyncio.StreamWriter) -> None:
        run_id = executor.received[-1].told["meta"]["run_id"]
        await world.queue.dag_runs.call_back(run_id, SUCCESS, owner="ann")
        await answer(writer)

    async with receiving(calls_back_first) as executor:
        home = await firm(world, executor)
        launch = await home.launch()

        assert (await home.goes_on()).status is JobStatus.COMPLETED
    assert ((await home.execution(launch)).ok, len(executor.received)) == (True, 1)
    assert await world.rows("SELECT state FROM holds") == [("settled",)]


@pytest.mark.req("CRON-10", error=True)
async def test_one_that_only_began_and_then_answers_with_an_error_has_failed(world: Hosted) -> None:
    async def begins_first(writer: asyncio.StreamWriter) -> None:
        run_id = executor.received[-1].told["meta"]["run_id"]
        await world.queue.dag_runs.call_back(run_id, STARTED, owner="ann")
        await answers(502)(writer)

    async with receiving(begins_first) as executor:
        home = await firm(world, executor)
        launch = await home.launch()

        assert (await home.goes_on()).status is JobStatus.FAILED
    assert (await home.execution(launch)).error_code == "executor_failed"


@pytest.mark.req("CRON-10")
@pytest.mark.parametrize(("said", "expected"), [(SUCCESS, Ending), (STARTED, Suspended)])
async def test_an_executor_that_has_called_back_is_not_called_again_when_its_caller_dies(
    world: Hosted, said: CallBack, expected: type
) -> None:
    async with receiving(never_answers) as executor:
        home = await firm(world, executor)
        await home.launch()
        claimed, other = await home.claim(), await world.another()
        dying = asyncio.create_task(home.handled(claimed, other))
        await executor.has_received.wait()
        await home.world.queue.dag_runs.call_back(executor.received[0].told["meta"]["run_id"], said, owner="ann")
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        world.clock.advance(60)

        answer = await home.handled(claimed)

    assert (type(answer), len(executor.received)) == (expected, 1)
