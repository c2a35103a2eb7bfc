"""What a call that was cancelled before it came leaves behind, on every store: no way in, and nobody shut out."""

from typing import Any

import pytest

from duly import every
from duly.bootstrap import Registry
from duly.domain.amounts import UNIT
from duly.domain.grants import Grant
from duly.domain.ids import JobId
from duly.domain.jobs import Ending, JobStatus
from duly.domain.payloads import value_of
from duly.domain.schedules import Target
from duly.domain.templates import NewTemplate
from tests.contracts.graphs import GRAPH, House, PatientClock, house, service
from tests.contracts.world import WIDE, World


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


class Counted:
    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, _: Any) -> dict[str, int]:
        self.count += 1
        return {"n": self.count}


async def grant_of(world: World, owner: str, *, credit: int = 0) -> Grant:
    account = await world.queue.accounts.create(owner=owner, name="main")
    if credit:
        await world.queue.accounts.credit(account.id, amount=credit, key="first")
    return await world.queue.grants.create(owner=owner, account_id=account.id, scopes=["graph:execute:*"])


async def runs(world: World, graph: Any) -> Ending:
    """The next job, as a worker runs it."""
    registry, hand = Registry(), await world.hand()
    registry.add(GRAPH, graph)
    (claimed,) = await hand.claim()
    handler = world.queue.graph_runs(registry)
    try:
        ending = await handler(claimed)
    finally:
        await handler.close()
    assert isinstance(ending, Ending)
    return ending


async def cancelled_before_its_call(world: World, home: House, job_id: JobId, key: str, grant_id: str) -> None:
    """As its worker does it, whose call had not come to anything."""
    (claimed,) = await (hand := await world.hand()).claim()
    assert claimed.id == job_id
    await home.executions.cancel(key, "no longer wanted", graph_id=GRAPH, grant_id=grant_id)
    await hand.finish(claimed, ending=Ending(status=JobStatus.CANCELLED, error="no longer wanted"))


@pytest.mark.req("GRAPH-04", error=True)
async def test_a_call_that_was_taken_back_is_no_way_to_somebody_elses_grant(world: World) -> None:
    graph = Counted()
    home, eves = await house(world.queue, graph), await grant_of(world, "eve")
    template = NewTemplate(name="mine", kind="graph.run", params={"graph_id": GRAPH, "grant_id": eves.id}, pool=WIDE)
    await world.queue.templates.create(template, owner="eve")
    put = await world.queue.jobs.put_from("mine", {}, owner="eve")
    await cancelled_before_its_call(world, home, put.job_id, put.job_id, eves.id)
    again = await world.queue.jobs.retry(put.job_id, owner="eve")
    await home.executions.cancel(f"{put.job_id}/2", "nor this", graph_id=GRAPH, grant_id=eves.id)
    anns = {"graph_id": GRAPH, "grant_id": home.grant_id, "max_cost": "1"}
    await world.queue.jobs.edit_params(again.job_id, anns, owner="eve")

    ending = await runs(world, graph)

    assert (graph.count, ending.status) == (0, JobStatus.FAILED), ending
    assert str(ending.error).startswith("unknown_grant")
    assert await world.rows("SELECT * FROM holds") == []


@pytest.mark.req("GRAPH-18")
async def test_a_cancel_counts_where_a_call_under_another_grant_was_taken_back_before(world: World) -> None:
    graph = Counted()
    home, bobs = await house(world.queue, graph), await grant_of(world, "bob")
    await home.executions.cancel("k", "not theirs", graph_id=GRAPH, grant_id=bobs.id)

    cancelled = await home.executions.cancel("k", "no longer wanted", graph_id=GRAPH, grant_id=home.grant_id)
    called = await home.executions.execute(home.asks(max_cost=UNIT))

    assert called == cancelled
    assert (called.error_message, called.grant_id, graph.count) == ("no longer wanted", home.grant_id, 0)
    assert await world.rows("SELECT * FROM holds") == []


async def test_a_slot_tried_again_after_its_call_was_taken_back_is_still_its_schedules(world: World) -> None:
    """Under another grant it runs, and its schedule's budgets count it."""
    graph = Counted()
    home = await house(world.queue, graph)
    target = Target(kind="graph.run", params={"graph_id": GRAPH}, pool=WIDE)
    await world.queue.schedules.create(owner="ann", schedule_id="a", cadence=every("1h"), target=target)
    started = await world.queue.schedules.run_now("a", owner="ann")
    job_id = JobId(str(started.job_id))
    job = await world.live(job_id)
    await cancelled_before_its_call(world, home, job_id, str(job.key), str(value_of(job.payload)["grant_id"]))
    again = await world.queue.jobs.retry(job_id, owner="ann")
    await world.queue.jobs.edit_params(
        again.job_id, {"graph_id": GRAPH, "grant_id": home.grant_id, "max_cost": "1"}, owner="ann"
    )

    ending = await runs(world, graph)

    assert (ending.status, graph.count) == (JobStatus.COMPLETED, 1), ending.error
    assert await world.rows("SELECT schedule_id, state FROM holds") == [("a", "settled")]


@pytest.mark.req("GRAPH-18")
async def test_a_run_refused_for_want_of_money_that_is_cancelled_meanwhile_answers_that(world: World) -> None:
    graph = Counted()
    home = await house(world.queue, graph, credit=0)
    request, grant = home.asks(max_cost=UNIT), await world.queue.grants.get(home.grant_id, owner="ann")
    execution, refusal = await home.executions._begin(request, grant, None)
    assert isinstance(refusal, Exception)

    cancelled = await service(await world.another(), graph).cancel("k", "no longer wanted")
    answer = await home.executions._started(execution, refusal, request, None, None)

    assert (answer, answer.error_code) == (cancelled, "cancelled")
