"""A cancel that overtakes its call, on every store: the call finds it, and nothing is held and nothing runs."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from duly.bootstrap import Registry
from duly.domain.amounts import UNIT
from duly.domain.errors import InvalidInput
from duly.domain.executions import Execution, UnknownExecution
from duly.domain.grants import GrantRevoked, GrantTooNarrow, UnknownGrant
from duly.domain.instants import Instant
from duly.domain.requests import KeyReused
from tests.contracts.graphs import GRAPH, House, PatientClock, house, service
from tests.contracts.world import World


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


class Calls:
    """A graph that runs until it is stopped."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, _: Any) -> None:
        self.count += 1
        await asyncio.Event().wait()


async def take_back(home: House, key: str = "k", **given: Any) -> Execution:
    asked = {"graph_id": GRAPH, "grant_id": home.grant_id, **given}
    return await home.executions.cancel(key, "no longer wanted", **asked)


async def held(world: World) -> list[tuple[Any, ...]]:
    return await world.rows("SELECT held, available FROM billing_accounts")


@pytest.mark.req("GRAPH-18")
async def test_a_call_that_its_cancel_has_overtaken_is_cancelled_and_spends_nothing(world: World) -> None:
    graph = Calls()
    home = await house(world.queue, graph)

    cancelled = await take_back(home)
    request = home.asks(max_cost=UNIT, input={"topic": "ai"})
    called = await home.executions.execute(request)
    elsewhere = await service(await world.another(), graph).execute(request)

    assert (called.ok, called.error_code, called.error_message) == (False, "cancelled", "no longer wanted")
    assert called == elsewhere == cancelled == await take_back(home)
    assert (graph.count, await world.rows("SELECT * FROM holds")) == (0, [])
    assert called.spent == 0
    assert (await home.executions.get(called.run_id, owner="ann")) == called


@pytest.mark.req("GRAPH-18")
async def test_whichever_of_cancel_and_call_comes_first_nothing_goes_on(world: World) -> None:
    """The graph ends by being cancelled alone, so whatever was not would never answer."""
    graph = Calls()
    home = await house(world.queue, graph, credit=100 * UNIT)
    other = service(await world.another(), graph)
    keys = [f"k{number}" for number in range(16)]

    async def call(key: str, number: int) -> Execution:
        if number % 2:
            await asyncio.sleep(0)
        return await other.execute(home.asks(key, max_cost=UNIT))

    async def cancel(key: str) -> Execution:
        return await other.cancel(key, "no longer wanted", graph_id=GRAPH, grant_id=home.grant_id)

    async with asyncio.timeout(60):
        answers = await asyncio.gather(
            *(call(key, number) for number, key in enumerate(keys)), *(cancel(key) for key in keys)
        )

    assert {each.error_code for each in answers} == {"cancelled"}
    assert [(each.key, each.run_id) for each in answers[:16]] == [(each.key, each.run_id) for each in answers[16:]]
    assert await held(world) == [(0, 100 * UNIT)]


@pytest.mark.req("GRAPH-18", error=True)
async def test_nobody_takes_back_what_he_could_not_have_asked_for(world: World) -> None:
    home = await house(world.queue, Calls(), scope=GRAPH)

    with pytest.raises(UnknownExecution):
        await home.executions.cancel("k", "why not", graph_id=GRAPH)
    with pytest.raises(UnknownGrant):
        await take_back(home, grant_id="grant_nowhere")
    with pytest.raises(GrantTooNarrow):
        await take_back(home, graph_id="python:other")
    with pytest.raises(InvalidInput, match="Idempotency-Key"):
        await take_back(home, "a key")
    assert await world.rows("SELECT * FROM execution_requests") == []


@pytest.mark.req("GRAPH-18", error=True)
async def test_a_tombstone_blocks_nobody_elses_key(world: World) -> None:
    async def answers(_: Any) -> dict[str, int]:
        return {"n": 1}

    home = await house(world.queue, answers)
    bob = await world.queue.accounts.create(owner="bob", name="main")
    grant = await world.queue.grants.create(owner="bob", account_id=bob.id, scopes=["graph:execute:*"])
    await take_back(home, grant_id=grant.id)

    ran = await home.executions.execute(home.asks(max_cost=UNIT))

    assert (ran.ok, ran.grant_id) == (True, home.grant_id)
    assert (await home.executions.execute(home.asks(max_cost=UNIT))) == ran
    with pytest.raises(UnknownExecution):
        await take_back(home, grant_id=grant.id)
    with pytest.raises(KeyReused):
        await home.executions.execute(replace(home.asks(), grant_id=grant.id))


async def test_a_grant_revoked_meanwhile_may_still_take_its_call_back(world: World) -> None:
    home = await house(world.queue, Calls())
    await world.queue.grants.revoke(home.grant_id, owner="ann")

    assert (await take_back(home)).error_code == "cancelled"
    with pytest.raises(GrantRevoked):
        await home.executions.execute(home.asks("another"))


async def test_tombstones_are_pruned_with_jobs_and_executions_are_not(world: World) -> None:
    async def answers(_: Any) -> None:
        return None

    home = await house(world.queue, answers)
    await home.executions.execute(home.asks("ran"))
    await take_back(home, "old")
    world.clock.advance(100)
    await take_back(home, "new")

    await world.queue.jobs.prune(before=Instant(world.clock.now() - 50_000_000))

    rows = await world.rows("SELECT idempotency_key FROM execution_requests ORDER BY idempotency_key")
    assert rows == [("new",), ("ran",)]


class Overtaking(httpx2.AsyncBaseTransport):
    """A network that delivers a call only once its cancel has been answered."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self.inner = inner
        self.called = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.late: list[asyncio.Task[httpx2.Response]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            await request.aread()
            self.late.append(asyncio.create_task(self._later(request)))
            self.called.set()
            return await asyncio.shield(self.late[-1])
        response = await self.inner.handle_async_request(request)
        self.cancelled.set()
        return response

    async def _later(self, request: httpx2.Request) -> httpx2.Response:
        await self.cancelled.wait()
        return await self.inner.handle_async_request(request)


@pytest.mark.req("GRAPH-18")
async def test_a_worker_that_cancels_a_job_is_obeyed_by_the_call_that_comes_later(world: World) -> None:
    graph = Calls()
    home, registry, hand = await house(world.queue, graph), Registry(), await world.hand()
    registry.add(GRAPH, graph)
    params = {"graph_id": GRAPH, "grant_id": home.grant_id, "key": "k", "max_cost": "1"}
    job_id = await world.put("graph.run", params=params)
    (claimed,) = await hand.claim()
    handler = world.queue.graph_runs(registry)
    network = Overtaking(handler.client._transport)
    object.__setattr__(handler.client, "_transport", network)

    running = asyncio.create_task(handler(claimed))
    async with asyncio.timeout(60):
        await network.called.wait()
        await world.queue.jobs.cancel(job_id, reason="no longer wanted")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        (late,) = [await each for each in network.late]
        await handler.close()

    assert late.status_code == 200
    assert b'"error_code":"cancelled"' in (await late.aread()).replace(b" ", b"")
    assert (graph.count, await held(world)) == (0, [(0, 10 * UNIT)])
