"""Retries by hand: of one chain, of all that failed, always of ended ones, and never twice for one request."""

import asyncio

import pytest

from duly.application import retries
from duly.application.retries import FailedFilter
from duly.domain.cadence import every
from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import COMPLETED, ChainLive, Ending, FinishedJob, Job, JobStatus, KeyTaken, PutOutcome, UnknownJob
from duly.domain.pools import PoolDraining
from duly.domain.retries import NO_RETRY, RetryPolicy
from duly.domain.schedules import Target
from duly.domain.templates import NewTemplate
from tests.contracts.world import WIDE, Hand, World

AT_ONCE = RetryPolicy(max_attempts=2, backoff_ms=0)
HOPELESS = Ending(status=JobStatus.FAILED, error="no use", retryable=False)


async def _failed(world: World, hand: Hand, kind: str = "work", **asked: object) -> JobId:
    """A chain that failed for good, by its first job."""
    job_id = await world.put(kind, **{"retry": NO_RETRY, **asked})  # type: ignore[arg-type]
    while claimed := await hand.claim():
        await hand.fail(*claimed)
    return job_id


@pytest.mark.req("DEC-001")
@pytest.mark.req("DEC-007")
async def test_an_ended_chain_is_tried_again_by_hand_with_its_whole_budget(world: World) -> None:
    hand = await world.hand()
    first = await _failed(world, hand, lane="lane", priority=3, params={"n": 1}, retry=AT_ONCE, timeout_ms=700)

    put = await world.queue.jobs.retry(first)
    while claimed := await hand.claim():
        await hand.fail(*claimed)
    last = await world.queue.jobs.retry(put.job_id)

    chain = await world.queue.jobs.chain(first)
    assert put.outcome is PutOutcome.CREATED
    assert [(job.attempt, job.retry_of) for job in chain] == [
        (1, None),
        (2, first),
        (3, chain[1].id),
        (4, chain[2].id),
        (5, chain[3].id),
    ]
    assert chain[2].id == put.job_id
    assert chain[4].id == last.job_id
    assert {job.chain for job in chain} == {first}
    again = await world.live(last.job_id)
    assert (again.lane, again.priority, again.payload, again.timeout_ms) == ("lane", 3, '{"n":1}', 700)
    assert (again.retry.max_attempts, again.retry.backoff_ms) == (6, 0)


@pytest.mark.req("DEC-007")
@pytest.mark.parametrize("ending", [COMPLETED, Ending(status=JobStatus.SKIPPED), HOPELESS])
async def test_whatever_ended_can_be_tried_again(world: World, ending: Ending) -> None:
    job_id = await world.put()
    hand = await world.hand()
    await hand.finish(*await hand.claim(), ending=ending)

    await world.queue.jobs.retry(job_id)

    (again,) = await hand.claim()
    assert again.attempt == 2


@pytest.mark.req("DEC-007")
async def test_a_cancelled_job_can_be_tried_again_and_comes_last(world: World) -> None:
    job_id = await world.put("first", resources=["ollama"])
    await world.queue.jobs.cancel(job_id, reason="not now")
    await world.put("second")

    again = await world.queue.jobs.retry(job_id)

    assert await world.kinds() == ["second", "first"]
    assert (await world.live(again.job_id)).resources == ("ollama",)


@pytest.mark.req("DEC-007", error=True)
async def test_a_live_chain_is_not_tried_again(world: World) -> None:
    job_id = await world.put(retry=RetryPolicy(backoff_ms=60_000))
    hand = await world.hand()
    with pytest.raises(ChainLive):
        await world.queue.jobs.retry(job_id)
    await hand.fail(*await hand.claim())

    with pytest.raises(ChainLive, match="still being tried"):
        await world.queue.jobs.retry(job_id)

    with pytest.raises(UnknownJob):
        await world.queue.jobs.retry(JobId("job_unknown"))
    assert len(await world.queue.jobs.chain(job_id)) == 2


@pytest.mark.req("DEC-007", error=True)
async def test_a_retry_by_hand_waits_for_its_key_and_its_pool(world: World) -> None:
    hand = await world.hand()
    keyed = await _failed(world, hand, key="k")
    plain = await _failed(world, hand)
    other = await world.put(key="k")

    with pytest.raises(KeyTaken, match="k"):
        await world.queue.jobs.retry(keyed)
    await world.queue.pools.drain(WIDE)
    with pytest.raises(PoolDraining):
        await world.queue.jobs.retry(plain)
    await world.queue.pools.open(WIDE)
    await world.queue.jobs.cancel(other, reason="out of the way")

    await world.queue.jobs.retry(keyed)
    await world.queue.jobs.retry(plain)


async def test_a_retry_by_hand_joins_its_lane_behind_others(world: World) -> None:
    hand = await world.hand()
    job_id = await _failed(world, hand, lane="lane")
    await world.put("other", lane="lane")

    again = await world.queue.jobs.retry(job_id)

    assert await world.state(again.job_id) == "waiting"
    assert await hand.work_off() == ["other", "work"]


async def test_asked_twice_under_one_key_it_is_tried_again_once(world: World) -> None:
    hand = await world.hand()
    job_id = await _failed(world, hand)

    first = await world.queue.jobs.retry(job_id, key="request 1")
    assert await world.queue.jobs.retry(job_id, key="request 1") == first
    await hand.fail(*await hand.claim())
    assert await world.queue.jobs.retry(job_id, key="request 1") == first
    second = await world.queue.jobs.retry(job_id, key="request 2")

    assert second != first
    assert len(await world.queue.jobs.chain(job_id)) == 3


async def test_of_many_who_ask_at_once_one_is_heard(world: World) -> None:
    hand = await world.hand()
    job_id = await _failed(world, hand)

    answers = await asyncio.gather(*(world.queue.jobs.retry(job_id) for _ in range(8)), return_exceptions=True)

    assert sum(not isinstance(answer, ChainLive) for answer in answers) == 1
    assert len(await world.queue.jobs.chain(job_id)) == 2


async def test_a_budget_can_be_renewed_beyond_every_bound(world: World) -> None:
    hand = await world.hand()
    policy = RetryPolicy(max_attempts=1_000, backoff_ms=0)
    job_id = await world.put(retry=policy)
    await hand.finish(*await hand.claim(), ending=HOPELESS)
    await world.queue.jobs.retry(job_id)
    await hand.fail(*await hand.claim())

    live = (await world.queue.jobs.chain(job_id))[-1]

    assert isinstance(live, Job)
    assert (live.attempt, live.retry.max_attempts) == (3, 1_001)


async def test_a_slots_outcome_stays_and_its_owner_may_try_its_job_again(world: World) -> None:
    world.is_audited = True
    queue, hand = world.queue, await world.hand()
    target = Target(kind="work", pool=WIDE, retry=NO_RETRY)
    await queue.schedules.create(owner="ann", cadence=every("1h"), target=target, schedule_id="hourly")
    run = await queue.schedules.run_now("hourly", owner="ann", key="by hand")
    await hand.fail(*await hand.claim())
    ended = await queue.runs.get(run.id, owner="ann")
    assert ended.job_id is not None

    with pytest.raises(UnknownJob):
        await queue.jobs.retry(ended.job_id, owner="bob")
    put = await queue.jobs.retry(ended.job_id, owner="ann")
    assert await world.live(put.job_id) == await queue.jobs.find(put.job_id, owner="ann")
    await hand.finish(*await hand.claim())

    assert await queue.runs.get(run.id, owner="ann") == ended
    assert [job.id for job in await queue.jobs.ended(owner="ann")] == [put.job_id, ended.job_id]


# All that failed.


@pytest.mark.req("DEC-007")
async def test_failed_lists_the_last_attempts_of_chains_that_failed_for_good(world: World) -> None:
    hand = await world.hand()
    twice = await _failed(world, hand, retry=AT_ONCE)
    hopeless = await world.put("hopeless")
    await hand.finish(*await hand.claim(), ending=HOPELESS)
    tried = await _failed(world, hand)
    again = await world.queue.jobs.retry(tried)
    fine = await world.put("fine")
    await hand.finish(*[job for job in await hand.claim(2) if job.id in (fine, again.job_id)])
    waiting = await world.put("waiting", retry=RetryPolicy(backoff_ms=60_000))
    await hand.fail(*await hand.claim())

    failed = await world.queue.jobs.failed(owner=None)

    last = (await world.queue.jobs.chain(twice))[-1].id
    assert [job.id for job in failed] == sorted([last, hopeless], reverse=True)
    assert {job.id: job.retryable for job in failed} == {last: True, hopeless: False}
    assert waiting not in {job.id for job in failed}
    pages = [await world.queue.jobs.failed(owner=None, most=1)]
    pages.append(await world.queue.jobs.failed(owner=None, most=1, before=pages[0][0].id))
    assert [job.id for (job,) in pages] == [job.id for job in failed]


@pytest.mark.req("OWN-05")
async def test_a_bulk_retry_previews_exactly_what_it_touches_and_keeps_to_its_cap(world: World) -> None:
    jobs, hand = world.queue.jobs, await world.hand()
    await world.pool("other", 10)
    ids = [await _failed(world, hand, "mail") for _ in range(5)]
    await _failed(world, hand, "print")
    elsewhere = await world.put("mail", pool="other", retry=NO_RETRY)
    await hand.fail(*await hand.claim(pool=PoolName("other")))
    before = await world.snapshot()

    preview = await jobs.retry_failed(FailedFilter(kind="mail", pool=WIDE), owner=None, cap=3)

    assert await world.snapshot() == before
    assert (preview.jobs, preview.more, preview.puts) == (tuple(reversed(ids))[:3], True, ())
    late = await _failed(world, hand, "mail")
    done = await jobs.retry_failed(FailedFilter(kind="mail", jobs=preview.jobs), owner=None, cap=3, dry_run=False)
    assert (done.jobs, done.more, done.skipped) == (preview.jobs, False, ())
    assert len(done.puts) == 3
    left = {job.id for job in await jobs.failed(owner=None)}
    assert left & {*ids, elsewhere, late} == {*ids[:2], elsewhere, late}


@pytest.mark.req("OWN-05")
async def test_a_bulk_retry_finds_what_it_was_told_behind_many_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "MOST_LISTED", 2)
    hand = await world.hand()
    ids = [await _failed(world, hand) for _ in range(7)]

    done = await world.queue.jobs.retry_failed(FailedFilter(jobs=(ids[0], ids[3])), owner=None, cap=2, dry_run=False)

    assert (done.jobs, done.more, len(done.puts)) == ((ids[3], ids[0]), False, 2)


@pytest.mark.req("OWN-05")
async def test_a_bulk_retry_passes_over_what_it_cannot_try_and_says_so(world: World) -> None:
    hand = await world.hand()
    keyed = await _failed(world, hand, key="k")
    plain = await _failed(world, hand)
    await world.put(key="k")

    done = await world.queue.jobs.retry_failed(FailedFilter(), owner=None, cap=10, dry_run=False)

    assert len(done.puts) == 1
    ((skipped, why),) = done.skipped
    assert (skipped, "key" in why) == (keyed, True)
    assert len(await world.queue.jobs.chain(plain)) == 2


@pytest.mark.req("OWN-05", error=True)
@pytest.mark.parametrize("cap", [0, -1, 10_001, None])
async def test_a_bulk_retry_without_a_sensible_cap_is_refused(world: World, cap: int) -> None:
    with pytest.raises(InvalidInput, match="cap"):
        await world.queue.jobs.retry_failed(FailedFilter(), owner=None, cap=cap, dry_run=False)


async def test_an_owner_meets_only_its_own_failures(world: World) -> None:
    hand = await world.hand()
    template = NewTemplate(name="mail", kind="mail", pool=WIDE, retry=NO_RETRY)
    await world.queue.templates.create(template, owner="ann")
    put = await world.queue.jobs.put_from("mail", owner="ann")
    await _failed(world, hand)

    assert [job.id for job in await world.queue.jobs.failed(owner="ann")] == [put.job_id]
    assert await world.queue.jobs.failed(owner="bob") == []
    done = await world.queue.jobs.retry_failed(FailedFilter(), owner="ann", cap=9, dry_run=False)
    assert done.jobs == (put.job_id,)


async def test_pruning_forgets_where_a_chain_came_from_with_its_last_job(world: World) -> None:
    hand = await world.hand()
    template = NewTemplate(name="mail", kind="mail", pool=WIDE, retry=NO_RETRY)
    await world.queue.templates.create(template, owner="ann")
    put = await world.queue.jobs.put_from("mail", owner="ann")
    await hand.fail(*await hand.claim())
    world.clock.advance(10)
    again = await world.queue.jobs.retry(put.job_id, owner="ann", key="once")
    await hand.finish(*await hand.claim())

    assert await world.queue.jobs.prune(before=world.clock.now()) == 1
    assert isinstance(await world.queue.jobs.find(again.job_id, owner="ann"), FinishedJob)
    world.clock.advance(10)
    assert await world.queue.jobs.prune(before=world.clock.now()) == 1

    assert await world.rows("SELECT chain_id FROM job_origins UNION ALL SELECT chain FROM manual_retries") == []
