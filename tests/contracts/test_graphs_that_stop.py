"""A graph that is cancelled or waits, cut at its worst moments: it spends nothing more, and does not wait for ever."""

from typing import Any

import pytest

from duly.application.money import end_in
from duly.domain.amounts import UNIT
from duly.domain.billing import HoldState
from duly.domain.executions import GRAPH_RUN, Ended, ExecutionStatus, GraphResult, WaitsFor
from duly.domain.jobs import JobLocked
from duly.domain.payloads import json_of
from duly.domain.reviews import BACKSTOP, Decision, Verdict
from duly.ports.graphs import GraphCall
from duly.ports.storage import Transaction
from tests.contracts.graphs import PatientClock, decide, house
from tests.contracts.world import World


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


async def asks(call: GraphCall) -> Any:
    return {} if call.reply is not None else GraphResult(output={"q": 1}, waits=True)


async def test_cancelled_as_soon_as_it_is_begun_it_neither_runs_nor_keeps_money(world: World) -> None:
    entered: list[int] = []

    async def spends(call: GraphCall) -> dict[str, Any]:
        entered.append(call.attempt)
        return {}

    home = await house(world.queue, spends)
    service, request = home.executions, home.asks(max_cost=UNIT)
    grant = await world.queue.grants.get(home.grant_id, owner="ann")
    execution, begun = await service._begin(request, grant, None)
    assert begun is not None
    run = service._started(execution, begun, request, None, None)
    await service.cancel(request.key, "no longer wanted")

    outcome = await run

    assert (entered, outcome.status, outcome.error_code) == ([], ExecutionStatus.DONE, "cancelled")
    account = await world.queue.accounts.get(home.account_id, owner="ann")
    assert (account.balance.held, account.balance.charged) == (0, 0)


async def test_cancelled_after_the_decision_and_before_it_goes_on_it_is_over(world: World) -> None:
    home = await house(world.queue, asks)
    execution = await home.executions.execute(home.asks())
    job_id, hand = await world.put(GRAPH_RUN), await world.hand()
    (claimed,) = await hand.claim()
    await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)
    await decide(world.queue, execution.run_id, "approve")

    await world.queue.jobs.cancel(job_id, reason="no longer wanted")

    found = await home.executions.get(execution.run_id, owner="ann")
    assert (found.status, found.error_code) == (ExecutionStatus.DONE, "cancelled")


async def test_the_params_of_one_that_waits_are_fixed_as_of_one_that_runs(world: World) -> None:
    home = await house(world.queue, asks)
    execution = await home.executions.execute(home.asks())
    job_id, hand = await world.put(GRAPH_RUN), await world.hand()
    await world.queue.jobs.edit_params(job_id, {"graph_id": "python:g"})
    (claimed,) = await hand.claim()
    await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)

    with pytest.raises(JobLocked):
        await world.queue.jobs.edit_params(job_id, {"graph_id": "python:other"})


async def test_one_that_nobody_expires_in_time_does_not_ask_again_and_again(world: World) -> None:
    home = await house(world.queue, asks)
    execution = await home.executions.execute(home.asks(review_within_ms=1_000))
    job_id, hand = await world.put(GRAPH_RUN), await world.hand()
    (claimed,) = await hand.claim()
    world.clock.advance(3_600)

    await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)

    assert (await world.live(job_id)).run_at == world.clock.now() + BACKSTOP


async def test_one_that_an_earlier_version_let_wait_without_a_review_is_asked_about(world: World) -> None:
    home = await house(world.queue, asks)
    execution = await home.begins(home.asks())
    question = Ended(ok=None, result=json_of({"interrupts": [{"id": "a"}, {"id": "b"}]}, field="result"))

    async def work(tx: Transaction) -> None:
        assert await tx.executions.suspend(execution.claim, question, WaitsFor.REVIEW)
        await end_in(tx, execution.run_id, execution.attempt, HoldState.SETTLED, now=world.clock.now())

    await world.queue.storage.transact(work)
    for _ in range(2):
        await home.executions.execute(home.asks())

    reviews = await world.queue.reviews.of_run(execution.run_id, owner="ann")
    assert [(each.question_id, each.is_open) for each in reviews] == [("a", True), ("b", True)]
    for each in reviews:
        await world.queue.reviews.decide(each.id, Decision(verdict=Verdict.APPROVE, by="ann"), owner="ann")
    assert (await home.executions.execute(home.asks())).ok is True
