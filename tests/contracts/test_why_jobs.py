"""Why a job waits, or ended as it did, from what a real store has recorded."""

from typing import Any

import pytest

from duly.domain.explanations import Explained
from duly.domain.explanations.facts import NothingKnown
from duly.domain.explanations.jobs import MOST_ATTEMPTS_TOLD
from duly.domain.groups import GroupMode, GroupRunning, NewGroup, NewMember
from duly.domain.ids import JobId, PoolName
from duly.domain.instants import SECOND, Instant, Micros, written
from duly.domain.jobs import Ending, JobStatus, UnknownJob
from duly.domain.pools import Pool, PoolMode
from duly.domain.retries import RetryPolicy
from duly.domain.templates import NewTemplate
from tests.contracts.world import WIDE, Hand, World, new

NARROW = PoolName("narrow")


async def why(world: World, job_id: str, *, owner: str | None = None) -> Explained:
    return await world.queue.why.job(JobId(job_id), owner=owner)


def named(explained: Explained) -> dict[str, str]:
    return {fact.name: fact.sentence for fact in explained.facts}


async def worker(world: World, *kinds: str) -> Hand:
    session = await world.queue.sessions.open(name="at work", capacity=9, kinds=kinds)
    return Hand(world.queue, session.id)


# Why it waits


@pytest.mark.req("OWN-02")
async def test_a_full_pool_names_who_holds_its_places_and_what_is_ahead(world: World) -> None:
    await world.pool(NARROW, 1)
    hand = await worker(world, "work")
    first, second, third = [await world.put(pool=NARROW) for _ in range(3)]
    await hand.claim(pool=NARROW)

    explained = await why(world, third)

    begun = written(world.clock.now())
    facts = named(explained)
    assert explained.answer == "waiting"
    assert facts["put"] == f"{third} is a job of kind 'work' in the pool 'narrow', put at {begun}."
    assert facts["pool_full"] == (
        f"It needs a place of the pool 'narrow', of which 1 of 1 are in use by {first} (work, running since {begun})."
    )
    assert facts["place"] == f"It is number 2 in the order of the pool 'narrow', behind {second}."
    assert [fact.about for fact in explained.facts if fact.name == "pool_full"] == [("narrow", first)]
    assert "next" not in facts


@pytest.mark.req("OWN-02")
async def test_a_paused_pool_says_how_it_is_opened(world: World) -> None:
    await worker(world, "work")
    job = await world.put()
    await world.queue.pools.define(Pool(name=WIDE, slots=1_000, mode=PoolMode.PAUSED))

    explained = await why(world, job)

    assert named(explained)["pool_paused"] == "Its pool 'wide' is paused, and starts nothing."
    assert explained.sentences[-1] == "Let the pool start jobs again with `duly pool set wide --mode open`."


@pytest.mark.req("OWN-02")
async def test_a_kind_that_no_worker_runs_says_so(world: World) -> None:
    job = await world.put("brew")
    none = named(await why(world, job))
    await worker(world, "brow")
    other = named(await why(world, job))

    assert none["no_worker"] == "No worker is running, so nothing runs 'brew' yet."
    assert other["no_worker"] == "No worker that is running has a handler for 'brew'; did you mean 'brow'?"
    assert other["next"] == "Start a worker that has a handler for 'brew'."


@pytest.mark.req("OWN-02")
async def test_a_busy_lane_names_the_job_that_comes_first(world: World) -> None:
    hand = await worker(world, "work")
    head, second, third = [await world.put(lane="ann/mail") for _ in range(3)]
    await hand.claim()

    facts = named(await why(world, third))

    since = written(world.clock.now())
    assert facts["lane_busy"] == f"Its lane 'ann/mail' is busy: {head} (work, running since {since}) comes first."
    assert facts["lane_order"] == "1 job of the lane, besides, will run before it."
    assert "lane_order" not in named(await why(world, second))


@pytest.mark.req("OWN-02")
async def test_a_delayed_job_says_until_when_and_one_that_is_overdue_since_when(world: World) -> None:
    await worker(world, "work")
    at = Instant(world.clock.now() + 90 * SECOND)
    job = await world.put(run_at=at)

    waiting = named(await why(world, job))
    world.clock.advance(100)
    overdue = named(await why(world, job))

    assert waiting["delayed"] == f"It is due at {written(at)}, in 1 minute 30 seconds."
    assert overdue["overdue"] == f"It was due at {written(at)}, 10.0 s ago, and nobody has made it ready yet."


@pytest.mark.req("OWN-02")
async def test_a_retry_says_when_it_is_due_and_what_failed_before(world: World) -> None:
    hand = await worker(world, "work")
    job = await world.put(retry=RetryPolicy(max_attempts=3, backoff_ms=60_000))
    began = written(world.clock.now())
    claimed = await hand.claim()
    world.clock.advance(2)
    await hand.fail(*claimed)

    explained = await why(world, job)

    facts = named(explained)
    live = (await world.queue.jobs.chain(job))[-1]
    ended = written(world.clock.now())
    assert explained.answer == "waiting"
    assert facts["attempt_failed"] == (
        f"Attempt 1 ({job}) began at {began} in session {hand.session}, and after 2.0 s failed at {ended}: as asked."
    )
    assert facts["retry_due"].startswith(f"Attempt 2 of 3 is due at {written(live.run_at)}, in ")
    assert facts["attempt"] == f"It is attempt 1 of the chain of {job}; the last is {live.id}."


@pytest.mark.req("OWN-02")
async def test_a_job_that_lacks_a_resource_names_who_has_it(world: World) -> None:
    await world.pool("gpu", 1)
    hand = await worker(world, "work")
    first = await world.put(resources=["gpu"])
    second = await world.put(resources=["gpu"])
    await hand.claim(2)

    facts = named(await why(world, second))

    assert facts["resource_full"].startswith(
        f"It also needs a place of the pool 'gpu', of which 1 of 1 are in use by {first} (work, running"
    )


@pytest.mark.req("OWN-02")
async def test_direct_calls_are_counted_among_those_who_hold_places(world: World) -> None:
    await world.pool(NARROW, 1)
    hand = await worker(world, "work")
    job = await world.put(pool=NARROW)
    for _ in range(2):
        await world.queue.tickets.request(NARROW, session=hand.session, wait=Micros(60 * SECOND))

    facts = named(await why(world, job))

    assert facts["pool_full"].endswith("of which 1 of 1 are in use by 1 direct call.")
    assert facts["calls_first"] == "1 direct call waits for a place of it before the queue."


@pytest.mark.req("OWN-02")
async def test_a_share_that_is_used_up_says_whose(world: World) -> None:
    await world.pool(NARROW, 10, per_owner=1)
    hand = await worker(world, "work")
    for _ in range(2):
        await world.put(pool=NARROW, lane=None)
    await hand.claim(5, pool=NARROW)
    (ready,) = await world.queue.jobs.upcoming(NARROW)

    facts = named(await why(world, ready.id))

    used = "1 of 1 places are in use"
    assert facts["share_used_up"] == f"The share of all jobs that have no owner in that pool is used up: {used}."


@pytest.mark.req("OWN-02")
async def test_a_running_job_says_where_since_when_and_until_when(world: World) -> None:
    hand = await worker(world, "work")
    job = await world.put(timeout_ms=60_000)
    await hand.claim()
    await world.queue.jobs.cancel(job, reason="by ann")

    explained = await why(world, job)

    facts, now = named(explained), world.clock.now()
    assert explained.answer == "running"
    assert facts["running"] == f"It is running since {written(now)} in session {hand.session}: attempt 1 of 3."
    assert facts["session"] == f"That session is of the worker 'at work', last seen at {written(now)}."
    assert facts["time_out"] == f"Its time is up at {written(Instant(now + 60 * SECOND))}."
    assert facts["asked_to_stop"] == "It was asked to stop: by ann."


# Why it ended as it did


@pytest.mark.req("OWN-02")
async def test_a_chain_that_is_used_up_says_so_and_how_it_is_tried_again(world: World) -> None:
    hand = await worker(world, "work")
    job = await world.put(retry=RetryPolicy(max_attempts=1))
    await hand.fail(*await hand.claim())

    explained = await why(world, job)

    assert explained.answer == "failed"
    assert named(explained)["exhausted"] == (
        "It is not tried again by itself: its policy allows 1 attempt, and all are used up."
    )
    assert explained.sentences[-1] == f"Retry it with `duly job retry {job}`."


@pytest.mark.req("OWN-02")
async def test_a_failure_that_trying_again_cannot_help_says_so(world: World) -> None:
    hand = await worker(world, "work")
    job = await world.put(retry=RetryPolicy(max_attempts=3))
    bad = Ending(status=JobStatus.FAILED, error="no such user", retryable=False)
    await hand.finish(*await hand.claim(), ending=bad)

    facts = named(await why(world, job))

    assert facts["not_retryable"] == "It is not tried again by itself: its last failure says it would not help."
    assert "exhausted" not in facts


@pytest.mark.req("OWN-02")
async def test_a_job_whose_worker_was_lost_says_what_took_its_place(world: World) -> None:
    hand = await worker(world, "work")
    job = await world.put(retry=RetryPolicy(max_attempts=2, backoff_ms=0))
    await hand.claim()
    world.clock.advance(60)
    await world.queue.sessions.rescue_expired()
    again = await world.hand()
    await world.queue.jobs.stage()
    await again.work_off()

    explained = await why(world, job)

    facts = named(explained)
    assert explained.answer == "ran"
    assert facts["attempt_failed"].endswith(": worker lost: its session ended while this job was running.")
    assert f"in session {again.session}, and after 0 ms completed" in facts["attempt_completed"]


@pytest.mark.req("OWN-02")
async def test_a_cancelled_job_says_by_whom_and_that_it_never_started(world: World) -> None:
    job = await world.put()
    await world.queue.jobs.cancel(job, reason="cancelled by ann")

    explained = await why(world, job)

    at = written(world.clock.now())
    assert explained.answer == "cancelled"
    assert named(explained)["attempt_cancelled"] == (
        f"Attempt 1 ({job}) never started, and was cancelled at {at}: cancelled by ann."
    )


@pytest.mark.req("OWN-02")
async def test_an_attempt_that_was_asked_for_by_hand_says_when(world: World) -> None:
    hand = await worker(world, "work")
    job = await world.put()
    await hand.finish(*await hand.claim())
    world.clock.advance(5)
    put = await world.queue.jobs.retry(job)

    asked = written(world.clock.now())
    live = named(await why(world, put.job_id))
    await hand.fail(*await hand.claim())
    ended = named(await why(world, put.job_id))

    assert live["by_hand"] == f"Attempt 2 ({put.job_id}) was asked for by hand at {asked}."
    assert f"Attempt 2 ({put.job_id}), asked for by hand at {asked}, began" in ended["attempt_failed"]


@pytest.mark.req("OWN-02")
async def test_a_member_of_a_group_says_where_it_belongs(world: World) -> None:
    group = await world.queue.groups.create(NewGroup(members=[NewMember(job=new())] * 2, name="night"), owner="ann")
    members = await world.queue.groups.members(group.id, owner=None)

    facts = named(await why(world, members[1].job_id))

    assert facts["of_group"] == (
        f"It is number 2 of the 2 members of the parallel group 'night' {group.id}, which is RUNNING."
    )


# Who may ask, and what


@pytest.mark.req("OWN-02", error=True)
async def test_nothing_is_said_of_what_is_unknown_or_somebody_elses(world: World) -> None:
    job = await world.put()

    with pytest.raises(UnknownJob):
        await why(world, "job_99")
    with pytest.raises(UnknownJob):
        await why(world, job, owner="ann")
    for asked in ("job_99", "run_99", "grp_99", "exe_99", "nothing"):
        with pytest.raises(NothingKnown, match=asked):
            await world.queue.why.of(asked)


@pytest.mark.req("OWN-02")
async def test_an_owner_is_told_of_others_only_how_many_there_are(world: World) -> None:
    await world.pool(NARROW, 1)
    for name, owner in (("mine", "ann"), ("theirs", "bob")):
        await world.queue.templates.create(NewTemplate(name=name, kind="work", pool=NARROW), owner=owner)
    hand = await worker(world, "work")
    theirs: list[Any] = [await world.queue.jobs.put_from("theirs", owner="bob") for _ in range(2)]
    mine = await world.queue.jobs.put_from("mine", owner="ann")
    await hand.claim(pool=NARROW)

    told = " ".join((await why(world, mine.job_id, owner="ann")).sentences)

    assert "of which 1 of 1 are in use by 1 other job." in told
    assert "It is number 2 in the order of the pool 'narrow'." in told
    assert all(put.job_id not in told for put in theirs)
    assert theirs[0].job_id in " ".join((await why(world, mine.job_id)).sentences)


@pytest.mark.req("OWN-02")
async def test_whatever_id_one_has_is_found(world: World) -> None:
    job = await world.put()

    explained = await world.queue.why.of(job)

    assert isinstance(explained, Explained)
    assert (explained.subject, explained.id) == ("job", job)


@pytest.mark.req("OWN-02")
async def test_attempts_that_were_asked_for_by_hand_are_not_said_to_be_the_policys(world: World) -> None:
    job = await world.put(retry=RetryPolicy(max_attempts=1))
    hand = await world.hand()
    await hand.fail(*await hand.claim())
    before = named(await why(world, job))
    await world.queue.jobs.retry(job, owner=None)
    await hand.fail(*await hand.claim())

    after = named(await why(world, job))

    assert before["exhausted"].endswith(": its policy allows 1 attempt, and all are used up.")
    assert after["exhausted"].endswith(": its policy and retries by hand allow 2 attempts, and all are used up.")


@pytest.mark.req("OWN-02")
async def test_a_retry_is_not_advised_while_it_would_be_refused(world: World) -> None:
    members = [NewMember(job=new(retry=RetryPolicy(max_attempts=1))) for _ in range(2)]
    asked = NewGroup(members=members, mode=GroupMode.SEQUENTIAL, stop_on_failure=False)
    await world.queue.groups.create(asked, owner="ann")
    hand = await world.hand()
    (first,) = await hand.claim()
    await hand.fail(first)
    with pytest.raises(GroupRunning):
        await world.queue.jobs.retry(first.id, owner="ann")

    during = named(await why(world, first.id))
    await hand.finish(*await hand.claim())
    after = named(await why(world, first.id))

    assert "next" not in during
    assert after["next"] == f"Retry it with `duly job retry {first.id}`."


@pytest.mark.req("OWN-02")
async def test_of_very_many_attempts_the_newest_are_told_and_the_others_counted(world: World) -> None:
    job = await world.put(retry=RetryPolicy(max_attempts=1))
    hand = await world.hand()
    await hand.fail(*await hand.claim())
    for _ in range(MOST_ATTEMPTS_TOLD + 1):
        await world.queue.jobs.retry(job, owner=None)
        await hand.fail(*await hand.claim())

    explained = await why(world, job)

    ended = [fact for fact in explained.facts if fact.name == "attempt_failed"]
    assert len(ended) == MOST_ATTEMPTS_TOLD
    assert ended[0].sentence.startswith("Attempt 3 (")
    said = f"2 earlier attempts are not told here; GET /api/v1/jobs/{job}/chain lists them."
    assert named(explained)["earlier_attempts"] == said
