"""The exchange: ended runs for new jobs, in one commit, by the claim's own token and by nothing less."""

from typing import Any

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, PoolName, SessionId, Token
from duly.domain.jobs import COMPLETED, Ending, JobStatus
from duly.domain.payloads import Payload
from duly.domain.retries import NO_RETRY
from duly.domain.sessions import ClaimedJob, Report, SessionLost, Wanted
from tests.contracts.world import FAILED, WIDE, Hand, World


async def test_one_exchange_records_an_end_and_brings_the_next_job(world: World) -> None:
    await world.pool("one", 1)
    one = PoolName("one")
    a = await world.put("a", pool=one)
    await world.put("b", pool=one)
    hand = await world.hand(1)
    (first,) = await hand.claim(1, one)
    world.clock.advance(3)

    ending = Ending(status=JobStatus.COMPLETED, exit_code=0, result=Payload('{"n":1}'))
    exchange = await hand.exchange(reports=[Report(first, ending)], wanted={one: Wanted(1)})

    ended = await world.ended(a)
    assert [job.kind for job in exchange.started] == ["b"]
    assert (ended.status, ended.exit_code, ended.result) == (JobStatus.COMPLETED, 0, '{"n":1}')
    assert ended.finished_at == world.clock.now()
    assert ended.started_at == world.clock.now() - 3_000_000


async def test_a_claim_hands_over_all_that_a_handler_needs(world: World) -> None:
    await world.put("mail", params={"to": "a"}, key="k", lane="lane", timeout_ms=5, priority=3)
    hand = await world.hand()

    (job,) = await hand.claim()

    live = await world.live(job.id)
    assert (job.kind, job.payload, job.key, job.lane, job.timeout_ms) == ("mail", '{"to":"a"}', "k", "lane", 5)
    assert (job.attempt, job.max_attempts, job.chain, job.token) == (1, 3, job.id, 1)
    assert (job.state, job.order) == ("running", live.order)
    assert (live.session, live.token, live.started_at) == (hand.session, 1, world.clock.now())


async def test_an_exchange_that_wants_nothing_of_a_live_session_is_no_loss(world: World) -> None:
    await world.put()
    hand = await world.hand()

    for wanted in ({}, {WIDE: Wanted(0)}, {PoolName("nowhere"): Wanted(5)}):
        exchange = await hand.exchange(wanted=wanted)
        assert (list(exchange.started), list(exchange.held), list(exchange.stale)) == ([], [], [])


async def test_several_pools_are_served_in_one_exchange(world: World) -> None:
    await world.pool("p", 2)
    await world.pool("q", 1)
    for n in range(3):
        await world.put(f"p{n}", pool="p")
        await world.put(f"q{n}", pool="q")
    hand = await world.hand()

    exchange = await hand.exchange(wanted={PoolName("q"): Wanted(5), PoolName("p"): Wanted(5)})

    assert sorted(job.kind for job in exchange.started) == ["p0", "p1", "q0"]


# Only the claim's own token ends a run.


async def _one_running(world: World, **rest: Any) -> tuple[Hand, ClaimedJob]:
    await world.put("work", **rest)
    hand = await world.hand()
    (job,) = await hand.claim()
    return hand, job


@pytest.mark.req("RISK-02", error=True)
@pytest.mark.parametrize("ending", [COMPLETED, FAILED])
async def test_a_report_with_another_token_or_session_changes_nothing(world: World, ending: Ending) -> None:
    hand, job = await _one_running(world, lane="lane")
    stranger = await world.hand()
    before = await world.snapshot()

    stale_token = await hand.exchange(reports=[Report(job._replace(token=Token(99)), ending)])
    stale_session = await stranger.exchange(reports=[Report(job, ending)])
    unknown_session = await Hand(world.queue, SessionId("ses_unknown")).exchange(reports=[Report(job, ending)])

    assert [list(e.stale) for e in (stale_token, stale_session, unknown_session)] == [[job.id]] * 3
    assert await world.snapshot() == before


@pytest.mark.req("RISK-02", error=True)
async def test_one_stale_report_does_not_spoil_the_others(world: World) -> None:
    for kind in "abc":
        await world.put(kind)
    hand = await world.hand()
    a, b, c = await hand.claim(3)

    exchange = await hand.exchange(
        reports=[Report(a, FAILED), Report(b._replace(token=Token(99)), FAILED), Report(c, COMPLETED)]
    )

    assert list(exchange.stale) == [b.id]
    assert [await world.state(job.id) for job in (a, b, c)] == ["FAILED", "running", "COMPLETED"]
    assert len(await world.queue.jobs.chain(b.id)) == 1


async def test_the_same_report_twice_is_written_once_and_is_not_stale(world: World) -> None:
    hand, job = await _one_running(world)

    first = await hand.finish(job)
    second = await hand.finish(job)

    assert (list(first.stale), list(second.stale)) == ([], [])
    assert (await world.ended(job.id)).status is JobStatus.COMPLETED
    assert await world.used() == 0


async def test_the_same_report_twice_in_one_exchange_is_written_once(world: World) -> None:
    hand, job = await _one_running(world)

    exchange = await hand.exchange(reports=[Report(job, FAILED), Report(job, COMPLETED)])

    assert list(exchange.stale) == []
    assert (await world.ended(job.id)).status is JobStatus.FAILED, "what was said first"
    assert len(await world.queue.jobs.chain(job.id)) == 2


async def test_a_second_report_cannot_change_an_ending(world: World) -> None:
    hand, job = await _one_running(world, retry=NO_RETRY)
    await hand.finish(job)

    await hand.fail(job)

    assert (await world.ended(job.id)).status is JobStatus.COMPLETED


async def test_a_held_job_cannot_be_reported_as_ended(world: World) -> None:
    await world.put()
    hand = await world.hand()
    (held,) = await hand.hold()

    exchange = await hand.finish(held)

    assert list(exchange.stale) == [held.id]
    assert await world.state(held.id) == "claimed"


@pytest.mark.parametrize("status", [JobStatus.QUEUED, JobStatus.RUNNING])
@pytest.mark.req("DEC-001", error=True)
def test_a_run_cannot_end_as_something_that_is_no_end(status: JobStatus) -> None:
    with pytest.raises(InvalidInput, match="is no ending"):
        Ending(status=status)


# An answer that was lost.


async def test_an_exchange_repeated_with_its_token_finds_what_the_first_granted(world: World) -> None:
    for n in range(6):
        await world.put(f"n{n}")
    hand = await world.hand(2)
    done = await hand.claim(2)
    reports = [Report(job, COMPLETED) for job in done]
    wanted = {WIDE: Wanted(2, 1)}

    lost = await hand.exchange(reports=reports, wanted=wanted)
    found = await hand.exchange(reports=reports, wanted=wanted, again=True)

    assert [job.kind for job in lost.started] == ["n2", "n3"]
    assert (list(found.started), list(found.held)) == (list(lost.started), list(lost.held))
    assert list(found.stale) == []
    assert await world.used() == 3


async def test_a_plain_claim_repeated_with_its_token_finds_what_the_first_granted(world: World) -> None:
    await world.pool("gpu", 5)
    for n in range(4):
        await world.put(f"n{n}", resources=["gpu"] if n == 1 else [])
    hand = await world.hand()

    lost = await hand.exchange(wanted={WIDE: Wanted(2)})
    found = await hand.exchange(wanted={WIDE: Wanted(2)}, again=True)

    assert [job.kind for job in lost.started] == ["n0", "n1"]
    assert list(found.started) == list(lost.started)


async def test_a_failure_repeated_with_its_token_makes_one_retry(world: World) -> None:
    hand, job = await _one_running(world)
    report = Report(job, FAILED)

    await hand.exchange(reports=[report])
    found = await hand.exchange(reports=[report], again=True)

    assert list(found.stale) == []
    assert len(await world.queue.jobs.chain(job.id)) == 2


@pytest.mark.parametrize("resources", [[], ["gpu"]])
async def test_starting_held_jobs_repeated_with_its_token_finds_them_started(
    world: World, resources: list[str]
) -> None:
    await world.pool("gpu", 5)
    await world.put(resources=resources)
    hand = await world.hand()
    held = await hand.hold()

    lost = await hand.exchange(starting=held)
    found = await hand.exchange(starting=held, again=True)

    assert [job.id for job in lost.started] == [held[0].id]
    assert list(found.started) == list(lost.started), "a job that runs in the books must run in the worker"
    assert await world.used(PoolName("gpu")) == len(resources)


async def test_an_exchange_repeated_that_was_never_heard_grants_now(world: World) -> None:
    hand = await world.hand()
    await hand.exchange(wanted={WIDE: Wanted(1)})
    await world.put("late")

    found = await hand.exchange(wanted={WIDE: Wanted(1)}, again=True)

    assert [job.kind for job in found.started] == ["late"]


# Held ready.


async def test_a_held_job_waits_for_its_executor_and_keeps_its_place_in_the_pool(world: World) -> None:
    await world.pool("two", 2)
    two = PoolName("two")
    for kind in "abc":
        await world.put(kind, pool=two)
    hand = await world.hand(1)

    exchange = await hand.exchange(wanted={two: Wanted(1, 5)})

    (started,), (held,) = exchange.started, exchange.held
    assert (started.kind, held.kind, await world.used(two)) == ("a", "b", 2)
    assert (await world.live(held.id)).started_at is None
    world.clock.advance(2)
    exchange = await hand.exchange(reports=[Report(started, COMPLETED)], starting=[held], wanted={two: Wanted(0, 1)})
    assert [job.kind for job in exchange.started] == ["b"]
    assert [job.kind for job in exchange.held] == ["c"]
    assert (await world.live(held.id)).started_at == world.clock.now()


@pytest.mark.parametrize("held", [False, True])
async def test_a_job_given_back_returns_to_its_place(world: World, held: bool) -> None:
    for kind in "abc":
        await world.put(kind, lane=kind, resources=["ollama"] if kind == "a" else [])
    hand = await world.hand(3)
    (first,) = await (hand.hold() if held else hand.claim())

    await world.queue.sessions.give_back(hand.session, [first])
    await world.queue.sessions.give_back(hand.session, [first])

    job = await world.live(first.id)
    assert await world.kinds() == ["a", "b", "c"]
    assert (job.session, job.token, job.started_at, job.attempt) == (None, None, None, 1)
    assert await world.used() == 0
    assert await world.used(PoolName("ollama")) == 0
    other = await world.hand()
    assert [job.kind for job in await other.claim(1)] == ["a"]


@pytest.mark.req("RISK-02", error=True)
async def test_a_stranger_cannot_give_back_what_it_does_not_have(world: World) -> None:
    hand, job = await _one_running(world)
    stranger = await world.hand()
    before = await world.snapshot()

    await world.queue.sessions.give_back(stranger.session, [job])
    await world.queue.sessions.give_back(hand.session, [job._replace(token=Token(77))])

    assert await world.snapshot() == before


# Revoking.


async def test_a_revoked_run_ends_cancelled_frees_its_lane_and_fences_its_worker(world: World) -> None:
    hand, job = await _one_running(world, lane="lane", resources=["ollama"])
    behind = await world.put("behind", lane="lane")

    assert await world.queue.sessions.revoke(job.id, reason="overrun")
    late = await hand.finish(job)

    ended = await world.ended(job.id)
    assert (ended.status, ended.error) == (JobStatus.CANCELLED, "overrun")
    assert await world.state(behind) == "ready"
    assert (await world.used(), await world.used(PoolName("ollama"))) == (0, 0)
    assert await world.rows("SELECT busy FROM sessions") == [(0,)]
    assert len(await world.queue.jobs.chain(job.id)) == 1
    assert list(late.stale) == [job.id]
    assert (await world.ended(job.id)).status is JobStatus.CANCELLED


async def test_revoking_a_job_that_has_not_started_takes_the_claim_back(world: World) -> None:
    await world.put()
    hand = await world.hand()
    (held,) = await hand.hold()

    assert not await world.queue.sessions.revoke(held.id, reason="overrun")

    assert await world.state(held.id) == "ready"
    assert list((await hand.exchange(starting=[held])).started) == []


async def test_revoking_what_does_not_run_changes_nothing(world: World) -> None:
    job = await world.put()
    before = await world.snapshot()

    assert not await world.queue.sessions.revoke(job, reason="overrun")
    assert not await world.queue.sessions.revoke(JobId("job_unknown"), reason="overrun")

    assert await world.snapshot() == before


@pytest.mark.req("RISK-02", error=True)
async def test_a_session_that_never_was_cannot_claim(world: World) -> None:
    await world.put()
    nobody = Hand(world.queue, SessionId("ses_unknown"))

    for wanted in ({WIDE: Wanted(1)}, {WIDE: Wanted(0, 1)}, {}):
        with pytest.raises(SessionLost):
            await nobody.exchange(wanted=wanted)
    assert await world.kinds() == ["work"]
