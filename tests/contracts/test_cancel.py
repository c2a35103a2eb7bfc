"""Cancelling: a job that nobody has ends at once; a worker that has it is asked to stop."""

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId
from duly.domain.jobs import COMPLETED, Ending, JobAlreadyFinished, JobStatus, UnknownJob
from duly.domain.sessions import Report
from tests.contracts.world import FAILED, World


@pytest.mark.parametrize("state", ["ready", "waiting", "scheduled", "backoff", "parked"])
async def test_a_job_that_nobody_has_ends_cancelled_with_its_reason(world: World, state: str) -> None:
    job_id = await _in_state(world, state)

    assert await world.queue.jobs.cancel(job_id, reason="no longer wanted")

    ended = await world.ended(job_id)
    assert (ended.status, ended.error) == (JobStatus.CANCELLED, "no longer wanted")
    assert (ended.started_at, ended.finished_at) == (None, world.clock.now())


async def _in_state(world: World, state: str) -> JobId:
    if state == "waiting":
        await world.put(lane="lane")
    later = world.clock.now() + 1_000_000 if state == "scheduled" else None
    resources = ["ollama"] if state == "parked" else []
    if state == "parked":
        await world.put(resources=resources)
    job_id = await world.put(lane="lane", run_at=later, resources=resources)
    hand = await world.hand()
    if state == "backoff":
        await hand.fail(*await hand.claim())
        job_id = (await world.queue.jobs.chain(job_id))[-1].id
    elif state == "parked":
        await hand.claim(2)
    assert await world.state(job_id) == state
    return job_id


async def test_cancelling_a_retry_in_backoff_frees_its_lane(world: World) -> None:
    retry = await _in_state(world, "backoff")
    behind = await world.put("behind", lane="lane")
    assert await world.state(behind) == "waiting"

    await world.queue.jobs.cancel(retry, reason="give up")

    assert await world.state(behind) == "ready"


async def test_a_running_job_is_asked_to_stop_and_its_worker_hears_it_in_the_beat(world: World) -> None:
    job_id = await world.put()
    hand = await world.hand()
    await hand.claim()

    assert not await world.queue.jobs.cancel(job_id, reason="first reason")
    assert not await world.queue.jobs.cancel(job_id, reason="second reason")

    beat = await world.queue.sessions.beat(hand.session)
    assert beat.cancelled == {job_id: "first reason"}
    assert await world.state(job_id) == "running"


@pytest.mark.parametrize(
    ("ending", "status", "error"),
    [
        (FAILED, JobStatus.CANCELLED, "stop it"),
        (COMPLETED, JobStatus.COMPLETED, None),
        (Ending(status=JobStatus.SKIPPED, error="nothing to do"), JobStatus.SKIPPED, "nothing to do"),
    ],
)
async def test_a_cancelled_run_that_fails_is_cancelled_and_one_that_completes_is_complete(
    world: World, ending: Ending, status: JobStatus, error: str | None
) -> None:
    job_id = await world.put()
    hand = await world.hand()
    (job,) = await hand.claim()
    await world.queue.jobs.cancel(job_id, reason="stop it")

    await hand.exchange(reports=[Report(job, ending)])

    (only,) = await world.queue.jobs.chain(job_id)
    ended = await world.ended(only.id)
    assert (ended.status, ended.error) == (status, error)


async def test_a_cancelled_run_whose_worker_dies_is_cancelled_and_not_tried_again(world: World) -> None:
    job_id = await world.put()
    hand = await world.hand()
    await hand.claim()
    await world.queue.jobs.cancel(job_id, reason="stop it")
    world.clock.advance(31)

    await world.queue.sessions.rescue_expired()

    (only,) = await world.queue.jobs.chain(job_id)
    assert (await world.ended(only.id)).status is JobStatus.CANCELLED


@pytest.mark.parametrize("how", ["give back", "rescue", "close", "revoke"])
async def test_a_cancelled_claim_that_comes_back_ends_instead_of_running(world: World, how: str) -> None:
    job_id = await world.put(lane="lane")
    behind = await world.put("behind", lane="lane")
    hand = await world.hand()
    held = await hand.hold()
    await world.queue.jobs.cancel(job_id, reason="stop it")

    if how == "give back":
        await world.queue.sessions.give_back(hand.session, held)
    elif how == "close":
        await world.queue.sessions.close(hand.session)
    elif how == "revoke":
        await world.queue.sessions.revoke(job_id, reason="overrun")
    else:
        world.clock.advance(31)
        await world.queue.sessions.rescue_expired()

    ended = await world.ended(job_id)
    assert (ended.status, ended.error) == (JobStatus.CANCELLED, "stop it")
    assert await world.state(behind) == "ready"


@pytest.mark.req("DEC-001", error=True)
async def test_a_job_that_has_ended_cannot_be_cancelled(world: World) -> None:
    job_id = await world.put()
    hand = await world.hand()
    await hand.work_off()
    before = await world.snapshot()

    with pytest.raises(JobAlreadyFinished) as refused:
        await world.queue.jobs.cancel(job_id, reason="too late")

    assert refused.value.job_id == job_id
    assert await world.snapshot() == before


async def test_an_unknown_job_cannot_be_cancelled_or_found(world: World) -> None:
    unknown = JobId("job_unknown")

    with pytest.raises(UnknownJob):
        await world.queue.jobs.cancel(unknown, reason="no such thing")
    with pytest.raises(UnknownJob):
        await world.queue.jobs.get(unknown)


async def test_a_reason_must_say_something(world: World) -> None:
    job_id = await world.put()

    for reason in ("", "x" * 1_001, "a\0b"):
        with pytest.raises(InvalidInput, match="reason"):
            await world.queue.jobs.cancel(job_id, reason=reason)

    assert await world.state(job_id) == "ready"
