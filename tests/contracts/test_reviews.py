"""Reviews on every store: a run that waits holds nothing but its lane, and one decision stands."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from duly.application.reviews import EXPIRED_AT_ONCE, Delivery
from duly.domain.amounts import UNIT
from duly.domain.errors import InvalidInput
from duly.domain.executions import GRAPH_RUN, Execution, ExecutionStatus, GraphResult, OnCrash, Silence
from duly.domain.ids import JobId
from duly.domain.jobs import JobState, JobStatus
from duly.domain.payloads import value_of
from duly.domain.reviews import AlreadyDecided, Decision, Review, ReviewKind, ReviewState, UnknownReview, Verdict
from duly.domain.sessions import ClaimedJob
from duly.ports.graphs import GraphCall
from tests.contracts.graphs import House, PatientClock, decide, house
from tests.contracts.world import WIDE, Hand, World


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


async def asks(call: GraphCall) -> Any:
    """One question, then what was answered."""
    if call.reply is None:
        return GraphResult(output={"interrupts": [{"id": "q1", "value": "publish?"}]}, waits=True)
    return {"answers": dict(call.reply.answers)}


async def asks_two(call: GraphCall) -> Any:
    if call.reply is None:
        interrupts = [{"id": "a", "value": "first?"}, {"id": "b", "value": "second?"}]
        return GraphResult(output={"interrupts": interrupts}, waits=True)
    return {"answers": dict(call.reply.answers)}


def yes(**given: Any) -> Decision:
    return Decision(**{"verdict": Verdict.APPROVE, "by": "ann", **given})


async def waiting(world: World, graph: Any = asks, **asked: Any) -> tuple[House, Execution, list[Review]]:
    home = await house(world.queue, graph)
    execution = await home.executions.execute(home.asks(**asked))
    return home, execution, list(await world.queue.reviews.of_run(execution.run_id, owner="ann"))


async def suspended(world: World, execution: Execution, *, lane: str | None = None) -> tuple[Hand, JobId]:
    """As the worker does it: a job that is claimed and waits."""
    job_id, hand = await world.put(GRAPH_RUN, lane=lane), await world.hand()
    (claimed,) = await hand.claim()
    await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)
    return hand, job_id


async def claim_now(world: World, hand: Hand) -> list[ClaimedJob]:
    await world.queue.jobs.stage()
    return await hand.claim()


@pytest.mark.req("GRAPH-29")
async def test_a_run_that_waits_has_its_lane_and_nothing_else(world: World) -> None:
    _, execution, (review,) = await waiting(world)
    hand, job_id = await suspended(world, execution, lane="l")

    job = await world.live(job_id)
    assert (job.state, job.session, job.attempt) == (JobState.BACKOFF, None, 1)
    assert job.run_at > review.deadline
    assert await world.used() == 0
    assert await world.rows("SELECT busy FROM sessions") == [(0,)]
    behind = await world.put("behind", lane="l")
    assert await world.state(behind) == "waiting"
    assert await claim_now(world, hand) == []
    await world.keeps_the_laws()


@pytest.mark.req("GRAPH-29")
async def test_a_decision_puts_its_run_back_to_work_in_the_same_transaction(world: World) -> None:
    home, execution, (review,) = await waiting(world)
    hand, job_id = await suspended(world, execution)

    decided = await world.queue.reviews.decide(review.id, yes(note="go"), owner="ann")

    assert (decided.state, decided.decided_by, decided.note) == (ReviewState.APPROVED, "ann", "go")
    assert decided == await world.queue.reviews.get(review.id, owner="ann")
    assert [job.id for job in await claim_now(world, hand)] == [job_id]
    outcome = await home.executions.execute(home.asks())
    assert value_of(outcome.result or "") == {"answers": {"q1": True}}  # type: ignore[arg-type]


async def test_a_decision_that_comes_before_the_worker_lets_go_is_not_lost(world: World) -> None:
    _, execution, _ = await waiting(world)
    await world.put(GRAPH_RUN)
    hand = await world.hand()
    (claimed,) = await hand.claim()

    await decide(world.queue, execution.run_id, "approve")
    await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)

    assert [job.id for job in await hand.claim()] == [claimed.id]


async def test_suspending_again_after_a_lost_answer_changes_nothing(world: World) -> None:
    _, execution, _ = await waiting(world)
    await world.put(GRAPH_RUN)
    hand = await world.hand()
    (claimed,) = await hand.claim()

    for _ in range(2):
        await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)

    assert await world.used() == 0
    assert await world.rows("SELECT busy FROM sessions") == [(0,)]
    assert await world.state(claimed.id) == "backoff"


@pytest.mark.req("GRAPH-29", error=True)
async def test_the_first_decision_stands_and_the_second_is_told_of_it(world: World) -> None:
    home, _, (review,) = await waiting(world)
    first = await world.queue.reviews.decide(review.id, yes(key="k1"), owner="ann")

    with pytest.raises(AlreadyDecided, match=f"review {review.id} was approved by ann"):
        await world.queue.reviews.decide(review.id, yes(verdict=Verdict.REJECT, by="bob"), owner=None)
    with pytest.raises(AlreadyDecided):
        await world.queue.reviews.decide(review.id, yes(key="k2"), owner="ann")

    assert await world.queue.reviews.decide(review.id, yes(key="k1"), owner="ann") == first
    assert (await home.executions.execute(home.asks())).ok


async def test_of_two_that_decide_at_once_one_does(world: World) -> None:
    _, _, (review,) = await waiting(world)
    other = await world.another()

    told = await asyncio.gather(
        world.queue.reviews.decide(review.id, yes(), owner="ann"),
        other.reviews.decide(review.id, yes(verdict=Verdict.REJECT, by="bob"), owner=None),
        return_exceptions=True,
    )

    assert sorted(type(each).__name__ for each in told) == ["AlreadyDecided", "Review"]


@pytest.mark.req("GRAPH-29", error=True)
async def test_somebody_elses_review_does_not_exist(world: World) -> None:
    _, _, (review,) = await waiting(world)

    for attempt in (
        world.queue.reviews.get(review.id, owner="bob"),
        world.queue.reviews.decide(review.id, yes(by="bob"), owner="bob"),
        world.queue.reviews.get("review_nowhere", owner=None),
    ):
        with pytest.raises(UnknownReview):
            await attempt
    assert await world.queue.reviews.list(owner="bob") == []


async def test_each_of_several_questions_is_decided_and_the_last_lets_the_graph_go_on(world: World) -> None:
    home, execution, reviews = await waiting(world, asks_two)
    hand, _ = await suspended(world, execution)
    assert [each.question for each in reviews] == ['"first?"', '"second?"']

    await world.queue.reviews.decide(reviews[1].id, yes(verdict=Verdict.EDIT, value=[2]), owner="ann")
    assert await claim_now(world, hand) == []
    assert (await home.executions.execute(home.asks())).status is ExecutionStatus.WAITING
    await world.queue.reviews.decide(reviews[0].id, yes(), owner="ann")

    assert len(await claim_now(world, hand)) == 1
    outcome = await home.executions.execute(home.asks())
    assert value_of(outcome.result or "") == {"answers": {"a": True, "b": [2]}}  # type: ignore[arg-type]


async def test_one_rejection_ends_the_run_and_withdraws_the_other_questions(world: World) -> None:
    home, execution, reviews = await waiting(world, asks_two)
    hand, _ = await suspended(world, execution)

    await world.queue.reviews.decide(reviews[0].id, yes(verdict=Verdict.REJECT, note="no"), owner="ann")

    other = await world.queue.reviews.get(reviews[1].id, owner="ann")
    assert other.state is ReviewState.WITHDRAWN
    outcome = await home.executions.execute(home.asks())
    assert (outcome.ok, outcome.error_code) == (False, "rejected")
    assert len(await claim_now(world, hand)) == 1
    await world.keeps_the_laws()


async def test_questions_may_follow_each_other(world: World) -> None:
    async def graph(call: GraphCall) -> Any:
        answers = {} if call.reply is None else dict(call.reply.answers)
        if len(answers) < 3:
            return GraphResult(output={"interrupts": [{"id": f"q{len(answers)}", "value": "?"}]}, waits=True)
        return answers

    home, execution, _ = await waiting(world, graph)
    for number in range(3):
        await decide(world.queue, execution.run_id, "edit", number)
        execution = await home.executions.execute(home.asks())

    assert value_of(execution.result or "") == {"q0": 0, "q1": 1, "q2": 2}  # type: ignore[arg-type]
    assert execution.attempt == 4


@pytest.mark.parametrize(
    ("default", "value", "ok", "code"),
    [
        (Silence.APPROVE, None, True, None),
        (Silence.EDIT, {"by": "rule"}, True, None),
        (Silence.REJECT, None, False, "rejected"),
        (Silence.FAIL, None, False, "undecided"),
    ],
)
@pytest.mark.req("GRAPH-29")
async def test_nobodys_decision_is_the_default_once_the_deadline_has_passed(
    world: World, default: Silence, value: Any, ok: bool, code: str | None
) -> None:
    asked = {"review_within_ms": 60_000, "review_default": default, "review_value": value}
    home, execution, (review,) = await waiting(world, **asked)
    hand, job_id = await suspended(world, execution)
    keeper = world.queue.timekeeper()
    world.clock.advance(59)
    await keeper.tick()
    assert (await world.queue.reviews.get(review.id, owner="ann")).is_open
    world.clock.advance(1)

    await keeper.tick()

    expired = await world.queue.reviews.get(review.id, owner="ann")
    assert (expired.state, expired.decided_by) == (ReviewState.EXPIRED, "nobody, in time")
    assert [job.id for job in await claim_now(world, hand)] == [job_id]
    outcome = await home.executions.execute(home.asks(**asked))
    assert (outcome.ok, outcome.error_code) == (ok, code)
    if default is Silence.EDIT:
        assert value_of(outcome.result or "") == {"answers": {"q1": value}}  # type: ignore[arg-type]
    with pytest.raises(AlreadyDecided, match="expired by nobody"):
        await world.queue.reviews.decide(review.id, yes(), owner="ann")


async def test_a_decision_that_comes_late_counts_if_it_comes_before_a_timekeeper(world: World) -> None:
    home, _, (review,) = await waiting(world, review_within_ms=1_000, review_default=Silence.FAIL)
    world.clock.advance(3_600)

    await world.queue.reviews.decide(review.id, yes(), owner="ann")
    await world.queue.timekeeper().tick()

    assert (await home.executions.execute(home.asks(review_within_ms=1_000, review_default=Silence.FAIL))).ok


async def test_overdue_reviews_are_taken_a_few_at_a_time(world: World) -> None:
    home = await house(world.queue, asks)
    for number in range(EXPIRED_AT_ONCE + 1):
        await home.executions.execute(home.asks(f"k{number}", review_within_ms=1))
    world.clock.advance(1)

    assert await world.queue.reviews.expire_some()
    assert not await world.queue.reviews.expire_some()

    assert await world.queue.reviews.list(owner="ann", state=ReviewState.OPEN) == []


@pytest.mark.req("GRAPH-29")
async def test_cancelling_a_run_that_waits_withdraws_its_review_and_ends_its_execution(world: World) -> None:
    home, execution, (review,) = await waiting(world)
    _, job_id = await suspended(world, execution)

    await world.queue.jobs.cancel(job_id, reason="not needed")

    found = await world.queue.reviews.get(review.id, owner="ann")
    assert (found.state, found.decided_by) == (ReviewState.WITHDRAWN, "not needed")
    outcome = await home.executions.execute(home.asks())
    assert (outcome.ok, outcome.error_code) == (False, "cancelled")
    with pytest.raises(AlreadyDecided, match="withdrawn"):
        await world.queue.reviews.decide(review.id, yes(), owner="ann")
    await world.keeps_the_laws()


async def test_a_run_that_was_cancelled_as_it_began_to_wait_ends(world: World) -> None:
    _, execution, (review,) = await waiting(world)
    job_id = await world.put(GRAPH_RUN)
    hand = await world.hand()
    (claimed,) = await hand.claim()
    assert not await world.queue.jobs.cancel(job_id, reason="not needed")

    await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)

    assert (await world.ended(job_id)).status is JobStatus.CANCELLED
    assert (await world.queue.reviews.get(review.id, owner="ann")).state is ReviewState.WITHDRAWN
    await world.keeps_the_laws()


async def test_cancelling_the_execution_itself_withdraws_its_review(world: World) -> None:
    home, _, (review,) = await waiting(world)

    await home.executions.cancel("k", "not needed")

    assert (await world.queue.reviews.get(review.id, owner="ann")).state is ReviewState.WITHDRAWN
    await world.keeps_the_laws()


async def test_everything_about_a_review_outlives_the_process(world: World) -> None:
    _, execution, (review,) = await waiting(world)
    _, job_id = await suspended(world, execution)
    await world.reopen()

    assert await world.queue.reviews.list(owner="ann", state=ReviewState.OPEN) == [
        await world.queue.reviews.get(review.id, owner=None)
    ]
    await world.queue.reviews.decide(review.id, yes(), owner="ann")

    assert [job.id for job in await claim_now(world, await world.hand())] == [job_id]


@pytest.mark.req("GRAPH-29", error=True)
async def test_a_question_that_is_too_large_fails_the_run_and_is_asked_of_nobody(world: World) -> None:
    async def graph() -> Any:
        return GraphResult(output={"interrupts": [{"id": "q", "value": "x" * 70_000}]}, waits=True)

    _, execution, reviews = await waiting(world, graph)

    assert (execution.ok, execution.error_code, reviews) == (False, "graph_result_invalid", [])
    assert "65536 bytes" in str(execution.error_message)


@pytest.mark.req("OWN-03")
async def test_a_budget_that_asks_opens_a_review_and_an_approved_run_goes_beyond_it(world: World) -> None:
    home = await house(world.queue, asks, credit=10 * UNIT)
    await world.queue.budgets.set(
        "account", home.account_id, owner="ann", window="day", limit=UNIT // 2, on_exceeded="ask"
    )
    request = home.asks(max_cost=UNIT)

    execution = await home.executions.execute(request)

    (review,) = await world.queue.reviews.of_run(execution.run_id, owner="ann")
    assert (execution.status, review.kind) == (ExecutionStatus.WAITING, ReviewKind.BUDGET)
    question = value_of(review.question)
    assert "may spend 0.50 a day" in question["over_budget"]
    assert (question["asked"], question["limit"]) == ("1.00", "0.50")
    assert (await world.queue.accounts.get(home.account_id, owner=None)).balance.held == 0
    with pytest.raises(InvalidInput, match="nothing to edit"):
        await world.queue.reviews.decide(review.id, yes(verdict=Verdict.EDIT, value=1), owner="ann")

    await world.queue.reviews.decide(review.id, yes(), owner="ann")
    asked = await home.executions.execute(request)
    assert asked.status is ExecutionStatus.WAITING, asked.error_message
    # Once approved, it is not asked about again, whatever the graph asks.
    assert [each.kind for each in await world.queue.reviews.of_run(asked.run_id, owner="ann") if each.is_open] == [
        ReviewKind.GRAPH
    ]
    await decide(world.queue, asked.run_id, "approve")
    assert (await home.executions.execute(request)).ok
    assert (await world.queue.budgets.list(owner="ann"))[0].used == 0
    await world.keeps_the_laws()


@pytest.mark.req("OWN-03", error=True)
async def test_a_rejected_budget_review_ends_the_run_as_over_budget(world: World) -> None:
    home = await house(world.queue, asks, credit=10 * UNIT)
    await world.queue.budgets.set("account", home.account_id, owner="ann", window="day", limit=1, on_exceeded="ask")
    # Nobody's silence spends money that nobody allowed.
    request = home.asks(max_cost=UNIT, review_default=Silence.APPROVE, review_within_ms=1_000)
    first = await home.executions.execute(request)
    second = await home.executions.execute(
        home.asks("k2", max_cost=UNIT, review_default=Silence.APPROVE, review_within_ms=1_000)
    )

    await decide(world.queue, first.run_id, "reject", note="too dear")
    world.clock.advance(1)
    await world.queue.reviews.expire_some()

    for execution in (first, second):
        ended = await home.executions.get(execution.run_id, owner="ann")
        assert (ended.ok, ended.error_code) == (False, "over_budget")


async def test_a_budget_that_skips_still_counts_for_a_run_that_was_approved(world: World) -> None:
    home = await house(world.queue, asks, credit=10 * UNIT)
    request = home.asks(max_cost=UNIT)
    await world.queue.budgets.set("account", home.account_id, owner="ann", window="day", limit=1, on_exceeded="ask")
    execution = await home.executions.execute(request)
    await decide(world.queue, execution.run_id, "approve")
    await world.queue.budgets.set("account", home.account_id, owner="ann", window="total", limit=1, on_exceeded="skip")

    outcome = await home.executions.execute(request)

    assert (outcome.ok, outcome.error_code) == (False, "over_budget")


async def test_a_crash_that_is_asked_about_is_a_review_of_its_own_kind(world: World) -> None:
    home = await house(world.queue, asks)
    request = home.asks(on_crash=OnCrash.ASK)
    lost = await home.begins(request)
    world.clock.advance(40)
    await home.executions.execute(request)

    (review,) = await world.queue.reviews.of_run(lost.run_id, owner="ann")

    assert (review.kind, value_of(review.question)) == (ReviewKind.CRASH, {"crashed": 1})
    await decide(world.queue, lost.run_id, "reject")
    assert (await home.executions.execute(request)).error_code == "rejected"


async def test_a_delivery_decides_once(world: World) -> None:
    _, _, (review,) = await waiting(world)
    delivery = Delivery("plane", "d1")

    first = await world.queue.reviews.decide(review.id, yes(by="plane", key="plane:d1"), owner=None, delivery=delivery)
    again = await world.queue.reviews.decide(
        review.id, yes(verdict=Verdict.REJECT, by="plane"), owner=None, delivery=delivery
    )

    assert again == first
    assert await world.rows("SELECT source, delivery_id FROM inbound_deliveries") == [("plane", "d1")]
    world.clock.advance(8 * 86_400)
    with pytest.raises(AlreadyDecided):
        await world.queue.reviews.decide(review.id, yes(), owner=None, delivery=Delivery("plane", "d2"))


async def test_reviews_are_listed_newest_first_and_page_by_page(world: World) -> None:
    home = await house(world.queue, asks)
    for number in range(5):
        await home.executions.execute(home.asks(f"k{number}"))
    newest = await world.queue.reviews.list(owner="ann", most=3)

    older = await world.queue.reviews.list(owner="ann", before=newest[-1].id, most=3)

    ids = [each.id for each in (*newest, *older)]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == 5
    assert await world.queue.reviews.list(owner="ann", state=ReviewState.APPROVED) == []


async def test_a_pool_is_free_for_others_while_a_run_waits(world: World) -> None:
    await world.pool(WIDE, 1)
    _, execution, _ = await waiting(world)
    hand, _ = await suspended(world, execution)

    await world.put("other")

    assert [job.kind for job in await hand.claim()] == ["other"]


@pytest.mark.parametrize("rival", ["suspend", "cancel", "expire"])
async def test_whoever_comes_between_a_decision_and_its_run_leaves_neither_hanging(world: World, rival: str) -> None:
    """At once, in two processes: the run goes on or has ended, and nothing is left that waits for nobody."""
    home, other = await house(world.queue, asks), await world.another()
    for number in range(8):
        request = home.asks(f"k{number}", review_within_ms=1)
        execution = await home.executions.execute(request)
        (review,) = await world.queue.reviews.of_run(execution.run_id, owner="ann")
        job_id, hand = await world.put(GRAPH_RUN), await world.hand()
        (claimed,) = await hand.claim()
        if rival != "suspend":
            await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)
            world.clock.advance(1)
        rivals: dict[str, Callable[[], Awaitable[object]]] = {
            "suspend": partial(other.sessions.suspend, hand.session, claimed, execution.run_id),
            "cancel": partial(other.jobs.cancel, job_id, reason="not needed"),
            "expire": other.reviews.expire_some,
        }

        decided, _ = await asyncio.gather(
            world.queue.reviews.decide(review.id, yes(), owner="ann"), rivals[rival](), return_exceptions=True
        )

        assert isinstance(decided, (Review, AlreadyDecided)), decided
        await world.queue.jobs.stage()
        assert await world.state(job_id) in ("ready", "CANCELLED")
        for again in await hand.claim():
            await hand.finish(again)
        await world.keeps_the_laws()
