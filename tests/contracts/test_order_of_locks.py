"""Whoever suspends, decides or cancels a run that waits locks its rows in one order: nobody is a deadlock's victim."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from duly.bootstrap import Queue
from duly.domain.executions import GRAPH_RUN, GraphResult, Silence
from duly.domain.jobs import JobAlreadyFinished, JobState, JobStatus
from duly.domain.reviews import AlreadyDecided, Decision, Review, ReviewState, Verdict
from duly.domain.sessions import ClaimedJob
from duly.ports.graphs import GraphCall
from tests.contracts.graphs import House, PatientClock, house
from tests.contracts.points import met, stop_after, stop_before
from tests.contracts.shared_postgres import SharedPostgres
from tests.contracts.world import Hand, World

ROUNDS = 40


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


@pytest.fixture
def postgres_world(shared_postgres: SharedPostgres) -> World:
    shared_postgres.empty()
    world = World("postgres", shared_postgres.url)
    world.clock = PatientClock()
    return world


async def asks(call: GraphCall) -> Any:
    return GraphResult(output={"interrupts": [{"id": "q", "value": "?"}]}, waits=True) if call.reply is None else {}


class Run:
    """One that waits, or is about to: `claimed` is not suspended yet."""

    def __init__(self, review: Review, claimed: ClaimedJob, hand: Hand) -> None:
        self.review, self.claimed, self.hand = review, claimed, hand

    async def suspend(self) -> None:
        await self.hand.queue.sessions.suspend(self.hand.session, self.claimed, self.review.run_id)

    async def decide(self, queue: Queue, verdict: Verdict = Verdict.APPROVE) -> Review:
        return await queue.reviews.decide(self.review.id, Decision(verdict=verdict, by="ann"), owner="ann")


async def _begun(world: World, home: House, hand: Hand, key: str = "k", **asked: Any) -> Run:
    await world.put(GRAPH_RUN)
    (claimed,) = await hand.claim()
    execution = await home.executions.execute(home.asks(key, **asked))
    (review,) = await world.queue.reviews.of_run(execution.run_id, owner="ann")
    return Run(review, claimed, hand)


async def _waiting(world: World, home: House, hand: Hand, key: str = "k", **asked: Any) -> Run:
    run = await _begun(world, home, hand, key, **asked)
    await run.suspend()
    return run


async def _deadlocks(world: World) -> int:
    """As the server counts them, once every connection that may have met one has told of it, by closing."""
    if world.store == "sqlite":
        return 0  # one writer, who waits for nobody
    await world.close()
    try:
        return await _counted(world)
    finally:
        await world.reopen()


async def _counted(world: World) -> int:
    witness = await asyncpg.connect(world.place)
    others = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    try:
        while await witness.fetchval(f"SELECT count(*) FROM pg_stat_activity WHERE {others}"):
            await witness.execute("SELECT pg_sleep(0.01)")
        return int(await witness.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))
    finally:
        await witness.close()


async def _quietly(doing: Awaitable[object]) -> None:
    """Somebody may be faster."""
    with suppress(AlreadyDecided, JobAlreadyFinished):
        await doing


Meet = Callable[[World, Queue, Run], list[Awaitable[object]]]


def _a_decision_and_a_cancellation(world: World, other: Queue, run: Run) -> list[Awaitable[object]]:
    return [run.decide(other), world.queue.jobs.cancel(run.claimed.id, reason="no")]


def _a_rejection_and_a_cancellation(world: World, other: Queue, run: Run) -> list[Awaitable[object]]:
    return [world.queue.jobs.cancel(run.claimed.id, reason="no"), run.decide(other, Verdict.REJECT)]


def _the_deadline_and_a_cancellation(world: World, other: Queue, run: Run) -> list[Awaitable[object]]:
    return [other.reviews.expire_some(), world.queue.jobs.cancel(run.claimed.id, reason="no")]


def _a_decision_and_a_suspension(_: World, other: Queue, run: Run) -> list[Awaitable[object]]:
    return [run.decide(other), run.suspend()]


@pytest.mark.parametrize(
    ("meet", "is_waiting"),
    [
        (_a_decision_and_a_cancellation, True),
        (_a_rejection_and_a_cancellation, True),
        (_the_deadline_and_a_cancellation, True),
        (_a_decision_and_a_suspension, False),
    ],
)
@pytest.mark.req("GRAPH-29")
async def test_however_often_two_meet_over_a_run_that_waits_there_is_no_deadlock(
    world: World, meet: Meet, is_waiting: bool
) -> None:
    before = await _deadlocks(world)
    home, hand, other = await house(world.queue, asks), await world.hand(), await world.another()
    asked = {"review_within_ms": 1_000, "review_default": Silence.APPROVE}
    begun = _waiting if is_waiting else _begun

    for number in range(ROUNDS):
        run = await begun(world, home, hand, f"k{number}", **asked)
        world.clock.advance(2)
        await asyncio.gather(*(_quietly(each) for each in meet(world, other, run)))
        assert not (await world.queue.reviews.get(run.review.id, owner="ann")).is_open

    assert await _deadlocks(world) == before


async def test_a_cancellation_waits_for_a_decision_that_came_first_and_neither_begins_again(
    postgres_world: World,
) -> None:
    world = postgres_world
    home, hand, other = await house(world.queue, asks), await world.hand(), await world.another()
    run = await _waiting(world, home, hand)

    with stop_after("execution_by_run_locked") as point:
        deciding = asyncio.create_task(run.decide(other))
        await point.reached.wait()
        cancelling = asyncio.create_task(world.queue.jobs.cancel(run.claimed.id, reason="no"))
        await met(cancelling)
        point.go.set()
        decided, is_ended = await asyncio.gather(deciding, cancelling)

    assert (decided.state, is_ended) == (ReviewState.APPROVED, True)
    assert (await world.ended(run.claimed.id)).status is JobStatus.CANCELLED
    ran = [point.ran[name] for name in ("execution_by_run_locked", "decide_review", "record_withdrawn")]
    assert ran == [1, 1, 1], "the victim of a deadlock ran again"


async def test_a_decision_that_sees_a_job_begin_to_wait_begins_again_with_its_lock(postgres_world: World) -> None:
    world = postgres_world
    home, hand, other = await house(world.queue, asks), await world.hand(), await world.another()
    run = await _begun(world, home, hand)

    with stop_after("review_by_id") as point:
        deciding = asyncio.create_task(run.decide(other))
        await point.reached.wait()
        await run.suspend()
        locked = point.ran["job_by_id_locked"]
        point.go.set()
        decided = await deciding

    assert decided.state is ReviewState.APPROVED
    assert point.ran["job_by_id_locked"] - locked == 1
    assert point.ran["decide_review"] == 1
    await world.queue.jobs.stage()
    assert (await world.live(run.claimed.id)).state is JobState.READY


async def test_a_job_that_begins_to_wait_is_locked_before_its_execution(postgres_world: World) -> None:
    world = postgres_world
    home, hand = await house(world.queue, asks), await world.hand()
    run = await _begun(world, home, hand)

    with stop_before("execution_by_run_locked") as point:
        suspending = asyncio.create_task(run.suspend())
        await point.reached.wait()
        assert point.ran["job_by_id_locked"] == 1
        point.go.set()
        await suspending

    assert (await world.live(run.claimed.id)).state is JobState.BACKOFF
