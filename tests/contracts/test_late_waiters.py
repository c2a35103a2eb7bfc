"""A worker that lost its run says late that it waits, on every store: whoever took its place is woken all the same."""

import pytest

from duly.domain.ids import JobId
from duly.domain.jobs import JobStatus, Suspended
from tests.contracts.graphs import PatientClock
from tests.contracts.test_call_backs import SUCCESS, Firm, Hosted, firm


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
