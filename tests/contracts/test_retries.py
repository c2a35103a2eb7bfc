"""Retries: new jobs of one chain, after a growing wait, as often as the policy says."""

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import COMPLETED, Ending, FinishedJob, Job, JobStatus, UnknownJob
from duly.domain.retries import NO_RETRY, RetryPolicy
from tests.contracts.world import FAILED, WIDE, Hand, World, new


async def _fail_once(world: World, hand: Hand) -> None:
    await world.queue.jobs.stage()
    (job,) = await hand.claim()
    await hand.fail(job)


@pytest.mark.req("DEC-001")
@pytest.mark.req("DEC-007")
async def test_a_job_is_tried_three_times_in_all_as_jobs_of_one_chain(world: World) -> None:
    first = await world.put("work", key="k", lane="lane", params={"n": 1}, priority=4)
    hand = await world.hand()

    for _ in range(3):
        await _fail_once(world, hand)
        world.clock.advance(3_600)
    await world.queue.jobs.stage()

    chain = await world.queue.jobs.chain(first)
    assert await hand.claim() == []
    assert all(isinstance(job, FinishedJob) and job.status is JobStatus.FAILED for job in chain)
    assert [job.attempt for job in chain] == [1, 2, 3]
    assert [job.retry_of for job in chain] == [None, chain[0].id, chain[1].id]
    assert {job.chain for job in chain} == {first}
    assert {(job.key, job.lane, job.priority, job.payload) for job in chain} == {("k", "lane", 4, '{"n":1}')}
    for job in chain:
        assert await world.queue.jobs.chain(job.id) == chain


@pytest.mark.req("DEC-007")
async def test_the_wait_doubles_up_to_its_cap_less_at_most_a_tenth(world: World) -> None:
    job_id = await world.put(retry=RetryPolicy(max_attempts=6, backoff_ms=1_000, backoff_cap_ms=4_000))
    hand = await world.hand()
    waits = []

    for _ in range(5):
        await _fail_once(world, hand)
        retry = (await world.queue.jobs.chain(job_id))[-1]
        waits.append(retry.run_at - world.clock.now())
        assert isinstance(retry, Job)
        assert retry.state == "backoff"
        world.clock.advance(10)

    for wait, longest in zip(waits, (1, 2, 4, 4, 4), strict=True):
        assert longest * 900_000 < wait <= longest * 1_000_000


@pytest.mark.req("DEC-007")
async def test_a_retry_is_not_handed_out_before_its_time(world: World) -> None:
    await world.put(retry=RetryPolicy(backoff_ms=10_000))
    hand = await world.hand()
    await _fail_once(world, hand)

    world.clock.advance(8.9)
    due = await world.queue.jobs.stage()
    assert await hand.claim() == []
    assert due is not None
    world.clock.advance(micros=due - world.clock.now())
    assert await world.queue.jobs.stage() is None
    (retry,) = await hand.claim()
    assert retry.attempt == 2


@pytest.mark.req("DEC-001")
async def test_a_retry_keeps_its_place_in_the_order(world: World) -> None:
    await world.put("first", retry=RetryPolicy(backoff_ms=0))
    hand = await world.hand()
    (first,) = await hand.claim()
    await world.put("second")

    await hand.fail(first)
    await world.queue.jobs.stage()

    assert await hand.work_off() == ["first", "second"]


@pytest.mark.req("DEC-001")
async def test_a_retry_that_succeeds_ends_its_chain(world: World) -> None:
    job_id = await world.put(retry=RetryPolicy(backoff_ms=0))
    hand = await world.hand()
    await _fail_once(world, hand)
    await world.queue.jobs.stage()

    assert await hand.work_off() == ["work"]

    chain = await world.queue.jobs.chain(job_id)
    assert [job.status for job in chain if isinstance(job, FinishedJob)] == [JobStatus.FAILED, JobStatus.COMPLETED]


@pytest.mark.req("DEC-007", error=True)
@pytest.mark.parametrize(
    ("policy", "ending"),
    [
        (NO_RETRY, FAILED),
        (RetryPolicy(), Ending(status=JobStatus.FAILED, error="no use", retryable=False)),
        (RetryPolicy(), COMPLETED),
        (RetryPolicy(), Ending(status=JobStatus.SKIPPED)),
        (RetryPolicy(), Ending(status=JobStatus.CANCELLED, error="stopped")),
    ],
)
async def test_what_must_not_be_tried_again_is_not(world: World, policy: RetryPolicy, ending: Ending) -> None:
    job_id = await world.put(lane="lane", retry=policy)
    behind = await world.put("behind", lane="lane")
    hand = await world.hand()
    (job,) = await hand.claim()

    await hand.finish(job, ending=ending)

    (only,) = await world.queue.jobs.chain(job_id)
    assert isinstance(only, FinishedJob)
    assert (only.status, only.error) == (ending.status, ending.error)
    assert await world.state(behind) == "ready"


@pytest.mark.req("DEC-001", error=True)
async def test_an_unknown_job_has_no_chain(world: World) -> None:
    with pytest.raises(UnknownJob):
        await world.queue.jobs.chain(JobId("job_unknown"))


@pytest.mark.req("DEC-007")
async def test_a_retry_needs_its_resources_again(world: World) -> None:
    await world.put(resources=["ollama"], retry=RetryPolicy(backoff_ms=0))
    hand = await world.hand()
    await _fail_once(world, hand)
    assert await world.used(PoolName("ollama")) == 0
    await world.queue.jobs.stage()

    await hand.claim()

    assert await world.used(PoolName("ollama")) == 1


@pytest.mark.req("DEC-007")
async def test_many_failures_in_one_exchange_make_one_retry_each(world: World) -> None:
    await world.queue.jobs.put_many([new(f"n{n}", lane=f"lane {n}") for n in range(50)])
    hand = await world.hand()
    claimed = await hand.claim(50)

    await hand.fail(*claimed)

    rows = await world.rows("SELECT count(*), count(DISTINCT chain), min(attempt) FROM jobs WHERE state = 'backoff'")
    assert rows == [(50, 50, 2)]
    assert await world.used(WIDE) == 0


@pytest.mark.req("DEC-007", error=True)
async def test_a_policy_out_of_bounds_never_reaches_the_store(world: World) -> None:
    for bad in ({"max_attempts": 0}, {"max_attempts": 1.5}, {"backoff_ms": -1}, {"backoff_cap_ms": 10**15}):
        with pytest.raises(InvalidInput):
            await world.put(retry=RetryPolicy(**bad))

    assert await world.rows("SELECT id FROM jobs") == []
