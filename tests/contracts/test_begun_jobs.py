"""A job that has asked for a review has begun: what it was asked for stays as it is, on every store."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from duly.domain.executions import GRAPH_RUN, Execution, GraphResult
from duly.domain.ids import JobId, JobKey, Lane
from duly.domain.jobs import Ending, JobLocked, JobState, JobStatus, PutOutcome
from duly.domain.payloads import value_of
from duly.domain.sessions import Report
from duly.domain.templates import NewTemplate
from duly.ports.graphs import GraphCall
from tests.contracts.graphs import GRAPH, House, PatientClock, decide, house
from tests.contracts.world import WIDE, Hand, World

KEY = JobKey("digest")
ASKED = {"graph_id": GRAPH, "input": {"n": 1}}
OTHER = {"graph_id": GRAPH, "input": {"n": 2}}


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


async def asks(call: GraphCall) -> Any:
    if call.reply is None:
        return GraphResult(output={"interrupts": [{"id": "q1", "value": "publish?"}]}, waits=True)
    return {}


async def _home(world: World) -> House:
    home = await house(world.queue, asks)
    await world.queue.templates.create(NewTemplate(name="digests", kind=GRAPH_RUN, pool=WIDE), owner="ann")
    return home


async def _begun(world: World, home: House) -> tuple[Hand, JobId, Execution]:
    """A job made from ann's template, which a worker has, and which waits for what its execution asks."""
    put = await world.queue.jobs.put_from("digests", ASKED, owner="ann", key=KEY, lane=Lane("l"))
    hand = await world.hand()
    return hand, put.job_id, await home.executions.execute(home.asks())


async def _suspend(world: World, hand: Hand, execution: Execution) -> None:
    (claimed,) = await hand.claim()
    await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)


async def _waits(world: World, hand: Hand, execution: Execution) -> None:
    await _suspend(world, hand, execution)


async def _is_due_after_the_decision(world: World, hand: Hand, execution: Execution) -> None:
    await _suspend(world, hand, execution)
    await decide(world.queue, execution.run_id, "approve")


async def _is_ready_after_the_decision(world: World, hand: Hand, execution: Execution) -> None:
    await _is_due_after_the_decision(world, hand, execution)
    await world.queue.jobs.stage()


async def _is_to_learn_of_its_rejection(world: World, hand: Hand, execution: Execution) -> None:
    await _suspend(world, hand, execution)
    await decide(world.queue, execution.run_id, "reject")
    await world.queue.jobs.stage()


async def _was_decided_before_it_could_wait(world: World, hand: Hand, execution: Execution) -> None:
    (claimed,) = await hand.claim()
    await decide(world.queue, execution.run_id, "approve")
    await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)


Began = Callable[[World, Hand, Execution], Awaitable[None]]
BEGINNINGS = pytest.mark.parametrize(
    "began",
    [
        _waits,
        _is_due_after_the_decision,
        _is_ready_after_the_decision,
        _is_to_learn_of_its_rejection,
        _was_decided_before_it_could_wait,
    ],
)


@BEGINNINGS
@pytest.mark.req("INV-001")
@pytest.mark.req("GRAPH-07")
async def test_a_put_under_the_key_of_a_job_that_has_asked_leaves_it_as_it_is(world: World, began: Began) -> None:
    hand, job_id, execution = await _begun(world, await _home(world))
    await began(world, hand, execution)
    before = await world.live(job_id)
    assert not before.is_locked

    puts = [
        await world.queue.jobs.put_from("digests", OTHER, owner="ann", key=KEY),
        await world.puts(GRAPH_RUN, params=OTHER, key=KEY),
        await world.puts("another.kind", key=KEY, lane="elsewhere"),
    ]

    assert puts == [(job_id, PutOutcome.LEFT)] * 3
    assert await world.live(job_id) == before
    assert (await world.queue.jobs.find(job_id, owner="ann")).id == job_id


@BEGINNINGS
@pytest.mark.req("INV-001", error=True)
async def test_neither_an_edit_nor_the_database_changes_the_params_of_a_job_that_has_asked(
    world: World, began: Began
) -> None:
    hand, job_id, execution = await _begun(world, await _home(world))
    await began(world, hand, execution)
    job = await world.live(job_id)

    with pytest.raises(JobLocked, match="has begun"):
        await world.queue.jobs.edit_params(job_id, OTHER, owner="ann")
    with pytest.raises(JobLocked):
        await world.transact(lambda tx: tx.jobs.set_payload(job, job.payload))
    for change in ("payload = '{}'", "kind = 'other'"):
        with pytest.raises(Exception, match="jobs_params_fixed"):
            await world.rows(f"UPDATE jobs SET {change} WHERE id = '{job_id}'")
    assert value_of((await world.live(job_id)).payload) == ASKED


async def test_once_it_has_ended_its_key_is_free_and_a_job_that_never_asked_is_replaced(world: World) -> None:
    hand, job_id, execution = await _begun(world, await _home(world))
    await _is_ready_after_the_decision(world, hand, execution)
    await hand.finish(*await hand.claim())

    created = await world.queue.jobs.put_from("digests", OTHER, owner="ann", key=KEY)
    replaced = await world.queue.jobs.put_from("digests", ASKED, owner="ann", key=KEY)

    assert created.outcome is PutOutcome.CREATED
    assert created.job_id != job_id
    assert replaced == (created.job_id, PutOutcome.REPLACED)


async def test_a_worker_that_lost_its_claim_takes_no_reviews_from_the_retry(world: World) -> None:
    job_id = await world.put(GRAPH_RUN)
    home, hand = await _home(world), await world.hand()
    execution = await home.executions.execute(home.asks())
    (lost,) = await hand.claim()
    await hand.exchange(reports=[Report(lost, Ending(status=JobStatus.FAILED, error="lost"))])
    world.clock.advance(600)
    await world.queue.jobs.stage()
    (retry,) = await hand.claim()
    await world.queue.sessions.suspend(hand.session, retry, execution.run_id)

    await world.queue.sessions.suspend(hand.session, lost, execution.run_id)
    await decide(world.queue, execution.run_id, "approve")
    await world.queue.jobs.stage()

    assert retry.id != job_id
    assert (await world.live(retry.id)).state is JobState.READY
