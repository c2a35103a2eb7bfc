"""Workflows on every store: versions never change, finished nodes never run again, and failures are told."""

import asyncio
from typing import Any

import pytest

from duly.application.executions import Executions
from duly.bootstrap import Queue, Registry
from duly.domain.amounts import UNIT
from duly.domain.errors import InvalidInput
from duly.domain.executions import EventKind, Execution, ExecutionRequest, ModelCall, OnCrash
from duly.domain.instants import SECOND
from duly.domain.payloads import value_of
from duly.domain.requests import StillRunning
from duly.domain.workflows import NodeState, NotDeployed, UnknownWorkflow, VersionTaken, WorkflowTaken
from duly.graphs.telling import Tell
from duly.ports.graphs import GraphEvent
from tests.contracts.graphs import PatientClock
from tests.contracts.world import World

ONCE = {"max_attempts": 1}


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


def node(name: str, *needs: str, action: Any = "work", **given: Any) -> dict[str, Any]:
    return {"id": name, "action": action, "needs": list(needs), "inputs": {"name": name}, **given}


def flow(*nodes: dict[str, Any], **given: Any) -> dict[str, Any]:
    return {"name": "news", "nodes": list(nodes), **given}


class Shop:
    """Actions that count their calls, stand at gates, and fail as often as they are told to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.entered: dict[str, asyncio.Event] = {}
        self.failures: dict[str, int] = {}
        self.at_once = self.most_at_once = 0

    def holds(self, name: str) -> None:
        self.gates[name], self.entered[name] = asyncio.Event(), asyncio.Event()

    async def work(self, name: str, **inputs: Any) -> dict[str, Any]:
        self.calls.append(name)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if name in self.gates:
                self.entered[name].set()
                await self.gates[name].wait()
            if self.failures.get(name, 0) > 0:
                self.failures[name] -= 1
                raise LookupError(f"no {name}")
            return {"from": name, **inputs}
        finally:
            self.at_once -= 1


class Home:
    def __init__(self, queue: Queue, shop: Shop, grant_id: str) -> None:
        self.queue = queue
        self.shop = shop
        self.grant_id = grant_id
        self.executions = self.service(queue)

    def service(self, queue: Queue, **more: Any) -> Executions:
        registry = Registry()
        registry.add_action("work", self.shop.work)
        for name, function in more.items():
            registry.add_action(name, function)
        return queue.executions(registry)

    async def deploy(self, *nodes: dict[str, Any], **given: Any) -> int:
        knows = ["work", "spend"]
        return (await self.queue.workflows.deploy(flow(*nodes, **given), owner="ann", knows=knows)).version.version

    def asks(self, key: str = "k", **given: Any) -> ExecutionRequest:
        return ExecutionRequest(key=key, **{"graph_id": "dag:news", "grant_id": self.grant_id, "input": {}, **given})

    async def became(self, execution: Execution) -> dict[str, str]:
        told = await self.queue.dag_runs.get(execution.run_id, owner="ann")
        return {row.node: row.state.value for row in told.nodes}

    async def events(self, execution: Execution) -> list[tuple[str, Any]]:
        found = await self.executions.events(execution.run_id, owner="ann")
        return [(each.kind.value, value_of(each.data)) for each in found]


async def home(world: World) -> Home:
    account = await world.queue.accounts.create(owner="ann", name="main")
    await world.queue.accounts.credit(account.id, amount=10 * UNIT, key="first")
    grant = await world.queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:*"])
    return Home(world.queue, Shop(), grant.id)


def output(execution: Execution) -> Any:
    assert execution.ok, (execution.error_code, execution.error_message)
    assert execution.result is not None
    return value_of(execution.result)


# Versions


async def test_what_says_the_same_is_the_same_version_and_what_is_stored_never_changes(world: World) -> None:
    shop = await home(world)

    first = await shop.deploy(node("a"))
    again = await shop.deploy(node("a"))
    second = await shop.deploy(node("a"), node("b", "a"))
    third = await shop.deploy(node("a"))

    assert (first, again, second, third) == (1, 1, 2, 3)
    versions = await world.queue.workflows.versions("news", owner="ann")
    assert [(each.version, len(each.plan.nodes)) for each in versions] == [(3, 1), (2, 2), (1, 1)]
    assert (await world.queue.workflows.get("news", owner="ann")).newest == 3


async def test_a_version_that_is_named_must_be_the_next(world: World) -> None:
    shop = await home(world)

    assert await shop.deploy(node("a"), version=7) == 7
    assert await shop.deploy(node("a"), version=7) == 7
    with pytest.raises(VersionTaken):
        await shop.deploy(node("b"), version=7)
    assert await shop.deploy(node("b")) == 8


async def test_what_belongs_to_another_does_not_exist_and_its_name_is_taken(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a"))

    with pytest.raises(UnknownWorkflow):
        await world.queue.workflows.version("news", None, owner="eve")
    with pytest.raises(WorkflowTaken):
        await world.queue.workflows.deploy(flow(node("b")), owner="eve", knows=["work"])
    assert [each.name for each in await world.queue.workflows.list(owner="eve")] == []


@pytest.mark.req("CRON-09", error=True)
async def test_an_action_that_no_program_has_is_refused_and_nothing_is_stored(world: World) -> None:
    await world.queue.workflows.register_actions("app", ["work", "send"], owner="ops")

    with pytest.raises(InvalidInput, match=r"nodes\.a\.action: no program has an action 'sned' \(did you mean 'send'"):
        await world.queue.workflows.deploy(flow(node("a", action="sned")), owner="ann")

    assert await world.queue.workflows.list(owner=None) == []
    await world.queue.workflows.deploy(flow(node("a", action="send")), owner="ann")


# Running


@pytest.mark.req("CRON-08")
async def test_results_flow_along_references_and_the_last_nodes_are_the_result(world: World) -> None:
    shop = await home(world)
    read = {"name": "read", "text": {"from": "fetch", "path": "result.topic"}, "all": [{"from": "fetch"}]}
    await shop.deploy(
        node("read", inputs=read),
        node("fetch", inputs={"name": "fetch", "topic": {"param": "topic"}, "n": {"param": "n", "default": 3}}),
        node("aside"),
    )

    execution = await shop.executions.execute(shop.asks(input={"topic": "ai"}))

    assert output(execution)["outputs"] == {
        "read": {"from": "read", "text": "ai", "all": [{"from": "fetch", "topic": "ai", "n": 3}]},
        "aside": {"from": "aside"},
    }
    assert await shop.became(execution) == {"fetch": "success", "read": "success", "aside": "success"}
    events = await shop.events(execution)
    assert ("log", {"task": "read", "event": "started", "attempt": 1}) in events
    assert ("update", {"fetch": {"from": "fetch", "topic": "ai", "n": 3}}) in events


async def test_ready_nodes_run_side_by_side_and_no_more_than_allowed(world: World) -> None:
    shop = await home(world)
    await shop.deploy(*(node(f"n{number}") for number in range(6)), concurrency=3)
    for number in range(6):
        shop.shop.holds(f"n{number}")

    running = asyncio.create_task(shop.executions.execute(shop.asks()))
    for number in range(3):
        await shop.shop.entered[f"n{number}"].wait()
    await _pass(world, 5)
    assert shop.shop.at_once == 3
    for number in range(6):
        shop.shop.gates[f"n{number}"].set()

    assert output(await running)
    assert shop.shop.most_at_once == 3


@pytest.mark.req("CRON-08", error=True)
async def test_a_workflow_that_is_not_there_fails_cleanly(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a"))

    nowhere = await shop.executions.execute(shop.asks("k1", graph_id="dag:nowhere"))
    too_new = await shop.executions.execute(shop.asks("k2", graph_id="dag:news@9"))
    await world.queue.workflows.undeploy("news", owner="ann")
    undeployed = await shop.executions.execute(shop.asks("k3"))
    pinned = await shop.executions.execute(shop.asks("k4", graph_id="dag:news@1"))

    assert [each.error_code for each in (nowhere, too_new, undeployed)] == [
        UnknownWorkflow.code,
        UnknownWorkflow.code,
        NotDeployed.code,
    ]
    assert pinned.ok


async def test_anothers_workflow_cannot_be_run(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a"))
    account = await world.queue.accounts.create(owner="eve", name="main")
    grant = await world.queue.grants.create(owner="eve", account_id=account.id, scopes=["graph:execute:*"])

    execution = await shop.executions.execute(shop.asks(grant_id=grant.id))

    assert execution.error_code == UnknownWorkflow.code
    assert shop.shop.calls == []


async def test_a_node_is_tried_again_after_its_backoff(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a", retries={"max_attempts": 3, "backoff_ms": 2_000}), node("b", "a"))
    shop.shop.failures["a"] = 2

    running = asyncio.create_task(shop.executions.execute(shop.asks()))
    await _asleep(world, 2)
    assert shop.shop.calls == ["a"]
    world.clock.advance(2)
    await _asleep(world, 4)
    assert shop.shop.calls == ["a", "a"]
    world.clock.advance(4)

    assert output(await running)
    assert shop.shop.calls == ["a", "a", "a", "b"]


async def test_a_node_out_of_tries_fails_the_run_and_what_needs_it_is_skipped(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a", retries=ONCE), node("b", "a"), node("c", "b"), node("d"), node("e", "d"), concurrency=2)
    shop.shop.failures["a"] = 9
    shop.shop.holds("a")
    shop.shop.holds("d")

    running = asyncio.create_task(shop.executions.execute(shop.asks()))
    await shop.shop.entered["a"].wait()
    await shop.shop.entered["d"].wait()
    shop.shop.gates["a"].set()
    while ("log", {"task": "a", "event": "failed", "attempt": 1, "error": "LookupError: no a"}) not in (
        await shop.events(await _known(world))
    ):
        await _pass(world, 0.25)
    shop.shop.gates["d"].set()
    execution = await running

    assert (execution.ok, execution.error_code) == (False, "action_failed")
    assert execution.error_message == "node 'a' failed: LookupError: no a"
    told = await world.queue.dag_runs.get(execution.run_id, owner="ann")
    assert {row.node: (row.state.value, row.error) for row in told.nodes} == {
        "a": ("failed", "LookupError: no a"),
        "b": ("skipped", "it needs 'a', which failed"),
        "c": ("skipped", "it needs 'b', which was skipped"),
        "d": ("success", None),
        "e": ("skipped", "the run failed at 'a'"),
    }


async def test_a_node_that_takes_too_long_is_stopped_and_fails(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a", timeout_ms=2_000, retries=ONCE))
    shop.shop.holds("a")

    running = asyncio.create_task(shop.executions.execute(shop.asks()))
    await shop.shop.entered["a"].wait()
    await _pass(world, 3)
    execution = await running

    assert (execution.error_code, execution.error_message) == (
        "node_timeout",
        "node 'a' failed: it took longer than 2000 ms",
    )
    assert shop.shop.at_once == 0


async def test_an_input_that_leads_nowhere_fails_its_node_at_once(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a"), node("b", inputs={"name": "b", "x": {"from": "a", "path": "result.text.0"}}))

    execution = await shop.executions.execute(shop.asks())

    assert execution.error_message is not None
    assert "inputs.x: node 'a' has no result.text.0: no 'text'" in execution.error_message
    assert shop.shop.calls == ["a"]


async def test_what_nodes_spend_is_charged_by_node_and_try(world: World) -> None:
    shop = await home(world)

    async def spend(name: str, tell: Tell) -> str:
        call = ModelCall(unit="first", model="gpt-4o", input_tokens=1_000, output_tokens=100)
        tell(GraphEvent(EventKind.USAGE, {"unit": "first"}, call))
        return name

    executions = shop.service(world.queue, spend=spend)
    await shop.deploy(node("a", action="spend"), node("b", action="spend"))

    execution = await executions.execute(shop.asks(max_cost=UNIT))

    assert execution.ok, execution.error_message
    hold = await world.queue.money.get(execution.run_id, 1, owner=None)
    rows = await world.rows("SELECT unit, amount FROM charge_receipts ORDER BY unit")
    assert [unit for unit, _ in rows] == ["a:1:first", "b:1:first"]
    assert hold.spent == sum(amount for _, amount in rows) > 0


# Crashes


@pytest.mark.parametrize("on_crash", [OnCrash.RESUME, OnCrash.RERUN])
async def test_whoever_takes_over_goes_on_after_the_last_finished_node_and_keeps_the_version(
    world: World, on_crash: OnCrash
) -> None:
    shop = await home(world)
    at_once = {"max_attempts": 2, "backoff_ms": 0}
    await shop.deploy(node("a"), node("b", "a", retries=at_once), node("c", "b"))
    shop.shop.holds("b")
    request = shop.asks(on_crash=on_crash)
    dead = asyncio.create_task(shop.executions.execute(request))
    await shop.shop.entered["b"].wait()
    await _dies(shop.executions, dead)
    await shop.deploy(node("z"))
    await world.queue.workflows.undeploy("news", owner="ann")
    shop.shop.gates["b"].set()

    execution = await _taken_over(world, shop.service(await world.another()), request)

    assert output(execution)["outputs"] == {"c": {"from": "c"}}
    first = ["a", "b"]
    assert shop.shop.calls == [*first, *(["b", "c"] if on_crash is OnCrash.RESUME else ["a", "b", "c"])]
    assert (await world.queue.dag_runs.get(execution.run_id, owner="ann")).run.version == 1


async def test_a_node_with_one_try_is_never_begun_twice(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a", retries=ONCE), node("b", "a"))
    shop.shop.holds("a")
    dead = asyncio.create_task(shop.executions.execute(shop.asks()))
    await shop.shop.entered["a"].wait()
    await _dies(shop.executions, dead)

    execution = await _taken_over(world, shop.service(await world.another()), shop.asks())

    assert (execution.error_code, shop.shop.calls) == ("node_lost", ["a"])
    assert await shop.became(execution) == {"a": NodeState.FAILED, "b": NodeState.SKIPPED}


async def test_what_is_cancelled_begins_no_more_nodes(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a"), node("b", "a"))
    shop.shop.holds("a")
    running = asyncio.create_task(shop.executions.execute(shop.asks()))
    await shop.shop.entered["a"].wait()

    await shop.executions.cancel("k", "enough")
    execution = await running

    assert (execution.error_code, shop.shop.calls, shop.shop.at_once) == ("cancelled", ["a"], 0)
    assert await shop.became(execution) == {"a": "failed"}


async def test_once_the_run_is_lost_nothing_is_tried_again(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a", retries={"max_attempts": 9, "backoff_ms": 60_000}), node("b", retries=ONCE))
    shop.shop.failures |= {"a": 9, "b": 9}
    shop.shop.holds("b")

    running = asyncio.create_task(shop.executions.execute(shop.asks()))
    await shop.shop.entered["b"].wait()
    await _asleep(world, 60)
    shop.shop.gates["b"].set()
    execution = await running

    assert execution.error_code == "action_failed"
    assert sorted(shop.shop.calls) == ["a", "b"]


async def _known(world: World) -> Execution:
    found = await world.queue.storage.read(lambda tx: tx.executions.by_key("k"))
    assert found is not None
    return found


async def _dies(executions: Executions, running: "asyncio.Task[Execution]") -> None:
    """As a process does: nothing it would have said is said."""
    await executions.close()
    await asyncio.gather(running, return_exceptions=True)


async def _taken_over(world: World, executions: Executions, request: ExecutionRequest) -> Execution:
    with pytest.raises(StillRunning):
        await executions.execute(request)
    world.clock.advance(41)
    return await executions.execute(request)


async def _pass(world: World, seconds: float) -> None:
    clock = world.clock
    assert isinstance(clock, PatientClock)
    await clock.pass_slowly(seconds, step=min(seconds, 1))


async def _asleep(world: World, seconds: float) -> None:
    """Once somebody sleeps about so long, less the tenth that chance may take off."""
    clock = world.clock
    assert isinstance(clock, PatientClock)
    while not any(0.89 < (at - clock.lease_now()) / SECOND / seconds <= 1 for at, _ in clock._sleepers):  # noqa: ASYNC110 - it has no event for this
        await asyncio.sleep(0.005)
