"""Deploying workflows, registering their schedules and launching their runs, on every store."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from duly.application.registrar import ScheduleInput, key_of
from duly.bootstrap import Queue, Registry
from duly.domain.errors import InvalidInput
from duly.domain.executions import Execution, request_of
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import Job
from duly.domain.payloads import Payload, value_of
from duly.domain.requests import KeyReused
from duly.domain.runs import RunKind
from duly.domain.schedules import Schedule, ScheduleState, UnknownSchedule
from duly.domain.workflows import UnknownWorkflow, WorkflowTaken
from duly.graphs.dag import DagGraphs
from duly.graphs.router import Router
from tests.contracts.forgetful import forgetful
from tests.contracts.graphs import PatientClock
from tests.contracts.world import World

WORK = ["work"]


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


def trigger(name: str = "daily", cron: str = "0 7 * * *", **given: Any) -> dict[str, Any]:
    return {"id": name, "type": "schedule_based", "cron_expr": cron, "timezone": "Europe/Vienna", **given}


def flow(*triggers: dict[str, Any], **given: Any) -> dict[str, Any]:
    node = {"id": "a", "action": "work", "inputs": {"topic": {"param": "topic", "default": "ai"}}}
    return {"name": "news", "nodes": [node], "triggers": list(triggers), **given}


async def deploy(queue: Queue, *triggers: dict[str, Any], owner: str = "ann", **given: Any) -> dict[str, str]:
    deployed = await queue.workflows.deploy(flow(*triggers, **given), owner=owner, knows=WORK)
    return {each.trigger: each.fate.value for each in deployed.schedules}


async def schedule(queue: Queue, name: str = "daily") -> Schedule:
    return await queue.schedules.get(f"workflow:news:{name}", owner="ann")


def runs_what(schedule: Schedule) -> str:
    return str(value_of(schedule.target.payload)["graph_id"])


# Deploying


@pytest.mark.req("CRON-09")
async def test_deploying_makes_moves_and_removes_the_schedules_of_triggers(world: World) -> None:
    queue = world.queue
    assert await deploy(queue, trigger(), trigger("weekly", "0 7 * * MON")) == {"daily": "created", "weekly": "created"}
    first = await schedule(queue)

    world.clock.advance(10)
    assert await deploy(queue, trigger(), trigger("weekly", "0 7 * * MON")) == {
        "daily": "unchanged",
        "weekly": "unchanged",
    }
    assert await schedule(queue) == first

    world.clock.advance(10)
    moved = await deploy(queue, trigger(cron="30 8 * * *", overlap_policy="queue", params={"topic": "sea"}))
    assert moved == {"daily": "updated", "weekly": "deleted"}
    second = await schedule(queue)
    assert (runs_what(first), runs_what(second)) == ("dag:news@1", "dag:news@2")
    assert (second.revision, second.policies.overlap, second.next_slot) == (2, "queue", _vienna(8, 30))
    assert value_of(second.target.payload)["input"] == {"topic": "sea"}
    with pytest.raises(UnknownSchedule):
        await schedule(queue, "weekly")

    assert await queue.workflows.undeploy("news", owner="ann") == ["workflow:news:daily"]
    assert await queue.schedules.list(owner="ann") == []
    world.clock.advance(10)
    assert await deploy(queue, trigger()) == {"daily": "updated"}
    assert runs_what(await schedule(queue)) == "dag:news@3"


@pytest.mark.req("CRON-09")
async def test_a_schedule_has_a_grant_for_its_version_and_a_pause_outlives_a_new_one(world: World) -> None:
    queue = world.queue
    await deploy(queue, trigger())
    grant = await queue.grants.of_schedule("workflow:news:daily", owner="ann")
    await queue.schedules.pause("workflow:news:daily", owner="ann")

    world.clock.advance(10)
    await deploy(queue, trigger(), description="another")

    moved = await schedule(queue)
    assert moved.state is ScheduleState.PAUSED
    later = await queue.grants.of_schedule("workflow:news:daily", owner="ann")
    assert grant is not None
    assert later is not None
    assert (grant.scopes, later.scopes) == (("graph:execute:dag:news@1",), ("graph:execute:dag:news@2",))
    assert value_of(moved.target.payload)["grant_id"] == later.id


@pytest.mark.req("CRON-09", error=True)
@pytest.mark.req("GRAPH-02")
async def test_a_program_that_deploys_the_same_again_does_not_get_around_a_revoked_grant(world: World) -> None:
    queue = world.queue
    await deploy(queue, trigger())
    (grant,) = await queue.grants.list(owner="ann")
    await queue.grants.revoke(grant.id, owner="ann")

    world.clock.advance(10)
    assert await deploy(queue, trigger()) == {"daily": "unchanged"}
    assert [each.id for each in await queue.grants.list(owner="ann")] == [grant.id]

    await queue.registrar.upsert(asks(schedule_id="workflow:news:daily"))
    assert len(await queue.grants.list(owner="ann")) == 2, "by hand it is granted anew"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (trigger(cron="61 * * * *"), r"triggers\[1\]\.cron_expr"),
        (trigger(timezone="Mars/Base"), r"triggers\[1\]\.timezone"),
        (trigger("ok"), r"triggers\[1\]\.id: 'ok' is there twice"),
        (trigger(end_at="2020-01-01T00:00:00Z"), r"triggers\.daily\.cadence: has no fire left"),
        (trigger(overlap_policy="never"), r"triggers\[1\]\.overlap_policy"),
    ],
)
async def test_one_bad_trigger_and_nothing_is_deployed(world: World, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        await deploy(world.queue, trigger("ok"), wrong)

    assert await world.queue.workflows.list(owner=None) == []
    assert await world.queue.schedules.list(owner=None) == []


async def test_a_schedule_that_somebody_made_by_hand_is_left_alone(world: World) -> None:
    from duly.domain.cadence import every
    from duly.domain.schedules import Target

    made = await world.queue.schedules.create(
        owner="ann", schedule_id="workflow:news:daily", cadence=every("1h"), target=Target(kind="greet")
    )

    with pytest.raises(WorkflowTaken):
        await deploy(world.queue, trigger())

    assert await schedule(world.queue) == made
    assert await world.queue.workflows.list(owner=None) == []


# Registering


def asks(**given: Any) -> ScheduleInput:
    return ScheduleInput(
        **{
            "workflow_id": "news",
            "version": 1,
            "user_id": "ann",
            "cron_expr": "0 7 * * *",
            "schedule_id": "mine",
            **given,
        }
    )


@pytest.mark.req("CRON-01")
async def test_a_schedule_is_upserted_paused_read_with_its_next_fires_and_deleted(world: World) -> None:
    queue = world.queue
    await deploy(queue)

    made = await queue.registrar.upsert(asks(timezone="Europe/Vienna"))
    assert made.next_slot == _vienna(7, 0)
    assert (await queue.registrar.pause("mine", True, owner="ann")).state is ScheduleState.PAUSED
    assert (await queue.registrar.get("mine", owner="ann")).preview == []
    again = await queue.registrar.upsert(asks(timezone="Europe/Vienna"))
    found = await queue.registrar.get("mine", owner="ann")
    await queue.registrar.pause("mine", False, owner="ann")

    assert (again.state, found.version, found.bound.workflow) == (ScheduleState.ACTIVE, 1, "news")
    assert [fire.slot // SECOND for fire in found.preview] == [_vienna(7, 0, day) for day in range(5)]
    await queue.registrar.delete("mine", owner="ann")
    with pytest.raises(UnknownSchedule):
        await queue.registrar.get("mine", owner="ann")


@pytest.mark.req("CRON-01", error=True)
async def test_what_cannot_be_registered_is_refused_and_not_anothers_to_see(world: World) -> None:
    queue = world.queue
    await deploy(queue)
    await queue.registrar.upsert(asks())

    with pytest.raises(InvalidInput, match=r"^cron_expr, position"):
        await queue.registrar.upsert(asks(cron_expr="0 7 * *"))
    with pytest.raises(InvalidInput, match=r"^timezone"):
        await queue.registrar.upsert(asks(timezone="Mars/Base"))
    with pytest.raises(UnknownWorkflow):
        await queue.registrar.upsert(asks(version=2))
    with pytest.raises(UnknownWorkflow):
        await queue.registrar.upsert(asks(user_id="eve"))
    with pytest.raises(UnknownSchedule):
        await queue.registrar.get("mine", owner="eve")
    with pytest.raises(UnknownSchedule):
        await queue.registrar.delete("mine", owner="eve")
    assert await queue.accounts.list(owner="eve") == []


@pytest.mark.req("CRON-06")
async def test_a_slots_key_is_the_hash_of_schedule_and_second_and_launches_no_second_run(world: World) -> None:
    queue = world.queue
    await deploy(queue)
    made = await queue.registrar.upsert(asks(cron_expr="*/10 * * * * *"))
    assert made.next_slot is not None
    slot = Instant(made.next_slot * SECOND)
    key = hashlib.sha256(f"mine:{made.next_slot}".encode()).hexdigest()

    assert not await queue.launches.start("news", 1, "ann", slot, key)  # it is the schedule's own, and not due
    world.clock.advance((slot - world.clock.now()) / SECOND + 1)
    await queue.timekeeping.open_due()
    assert await queue.launches.start("news", 1, "ann", slot, key)

    runs = await queue.registrar.runs("mine", owner="ann", most=10)
    assert [key_of(run) for run in runs if run.kind is RunKind.SLOT][-1] == key
    assert len([job for job in await _jobs(queue) if job.kind == "graph.run"]) == len(runs)


# Launching


@pytest.mark.req("CRON-08")
async def test_a_key_launches_once_and_a_workflow_that_is_not_there_not_at_all(world: World) -> None:
    queue = world.queue
    await deploy(queue)
    at = Instant(1_700_000_000 * SECOND)

    assert await queue.launches.start("news", 1, "ann", at, "k1")
    assert await (await world.another()).launches.start("news", 1, "ann", at, "k1")
    assert not await queue.launches.start("nowhere", 1, "ann", at, "k2")
    assert not await queue.launches.start("news", 9, "ann", at, "k3")
    assert not await queue.launches.start("news", 1, "eve", at, "k4")

    (job,) = await _jobs(queue)
    assert value_of(job.payload)["graph_id"] == "dag:news@1"
    assert await queue.jobs.list(owner="ann") == [job]


@pytest.mark.req("CRON-08", error=True)
async def test_a_key_that_stands_for_another_launch_is_refused_and_a_missing_param_too(world: World) -> None:
    queue = world.queue
    await queue.workflows.deploy(
        {"name": "news", "nodes": [{"id": "a", "action": "work", "inputs": {"x": {"param": "topic"}}}]},
        owner="ann",
        knows=WORK,
    )
    await queue.launches.launch("news", owner="ann", params={"topic": "ai"}, key="k")

    with pytest.raises(KeyReused):
        await queue.launches.launch("news", owner="ann", params={"topic": "sea"}, key="k")
    with pytest.raises(InvalidInput, match=r"params\.topic: is missing: a\.inputs\.x refers to it"):
        await queue.launches.launch("news", owner="ann")
    assert len(await _jobs(queue)) == 1


async def launched_under(queue: Queue, *, version: int | None = None) -> str:
    launch = await queue.launches.launch("news", owner="ann", version=version)
    return str(next(value_of(job.payload)["grant_id"] for job in await _jobs(queue) if job.id == launch.job_id))


@pytest.mark.req("GRAPH-02")
async def test_launches_of_a_version_share_one_grant_for_it_alone(world: World) -> None:
    queue, other = world.queue, await world.another()
    await deploy(queue, trigger())
    before = {grant.id for grant in await queue.grants.list(owner="ann")}

    used = await asyncio.gather(*(launched_under(each) for each in (queue, other) * 6))
    await deploy(queue, trigger(), concurrency=2)
    newer = await launched_under(queue)

    grants = {grant.id: grant for grant in await queue.grants.list(owner="ann") if grant.id not in before}
    assert len(set(used)) == 1
    assert {used[0], newer} <= set(grants)
    assert (grants[used[0]].scopes, grants[newer].scopes) == (  # type: ignore[index]
        ("graph:execute:dag:news@1",),
        ("graph:execute:dag:news@2",),
    )
    assert await launched_under(queue, version=1) == used[0]
    assert len(await queue.grants.list(owner="ann")) == 4  # of two versions, each its schedule's and its launches'


@pytest.mark.req("GRAPH-02", error=True)
async def test_a_revoked_grant_is_no_launchs_and_the_next_has_another(world: World) -> None:
    queue = world.queue
    await deploy(queue)
    first = await launched_under(queue)
    await queue.grants.revoke(first, owner="ann")

    again = [await launched_under(queue) for _ in range(3)]

    assert again == [again[0]] * 3
    assert again[0] != first
    assert [grant.revoked_at is None for grant in await queue.grants.list(owner="ann")] == [False, True]


async def test_launches_under_one_key_at_once_are_one_and_mint_one_grant(world: World) -> None:
    queue, other = world.queue, await world.another()
    await deploy(queue)

    launches = await asyncio.gather(
        *(each.launches.launch("news", owner="ann", key="k") for each in (queue, other) * 4)
    )

    assert len({launch.job_id for launch in launches}) == len(await _jobs(queue)) == 1
    assert len(await queue.grants.list(owner="ann")) == 1


async def test_whoever_loses_the_answer_finds_what_was_done(world: World) -> None:
    queue = forgetful(world)

    assert await deploy(queue, trigger()) == {"daily": "created"}
    world.clock.advance(5)
    assert await deploy(queue, trigger("weekly")) == {"weekly": "created", "daily": "deleted"}
    launch = await queue.launches.launch("news", owner="ann")
    await queue.registrar.upsert(asks(version=2))
    await queue.registrar.upsert(asks(version=2))

    assert [each.version for each in await queue.workflows.versions("news", owner="ann")] == [2, 1]
    assert [job.id for job in await _jobs(queue)] == [launch.job_id]
    assert [each.id for each in await queue.schedules.list(owner="ann")] == ["mine", "workflow:news:weekly"]
    assert (await queue.registrar.get("mine", owner="ann")).schedule.revision == 1
    assert await queue.workflows.undeploy("news", owner="ann") == ["mine", "workflow:news:weekly"]


# An executor elsewhere


class Remote:
    """A server that an executor is, as far as the run knows."""

    def __init__(self, answer: Any = None, status: int = 202) -> None:
        self.asked: list[tuple[dict[str, str], Any]] = []
        self.answer = answer
        self.status = status

    def transport(self) -> httpx2.MockTransport:
        def handle(request: httpx2.Request) -> httpx2.Response:
            self.asked.append((dict(request.headers), json.loads(request.content)))
            return httpx2.Response(self.status, json=self.answer)

        return httpx2.MockTransport(handle)


async def remote_run(world: World, remote: Remote) -> Execution:
    queue = world.queue
    executor = {"url": "https://executor.example/run", "deadline_ms": 8_000}
    await deploy(queue, executor=executor)
    await queue.launches.start("news", 1, "ann", Instant(1_700_000_000 * SECOND), "k1")
    (job,) = await _jobs(queue)
    params = value_of(job.payload)
    executions = queue.executions(Registry())
    dag = DagGraphs(runs=queue.dag_runs, clock=world.clock, dice=world.dice, transport=remote.transport())
    object.__setattr__(executions, "graphs", Router(Registry(), {"dag": dag}))
    asked = {name: params[name] for name in ("graph_id", "grant_id", "input", "timeout_ms")}
    asked |= {"max_cost": None, "on_crash": params["on_crash"], "schedule_id": None}
    return await executions.execute(request_of(params["key"], Payload(json.dumps(asked))))


@pytest.mark.req("CRON-08")
async def test_an_executor_elsewhere_is_given_the_document_and_who_when_and_which(world: World) -> None:
    remote = Remote({"done": 3}, status=200)

    execution = await remote_run(world, remote)

    assert value_of(execution.result or Payload("null")) == {"outputs": {"done": 3}}
    ((headers, body),) = remote.asked
    assert headers["idempotency-key"] == "k1"
    assert body["dag"]["nodes"][0]["id"] == "a"
    meta = {name: body["meta"][name] for name in ("source", "user_id", "scheduled_for", "idempotency_key")}
    assert meta == {
        "source": "schedule",
        "user_id": "ann",
        "scheduled_for": "2023-11-14T22:13:20Z",
        "idempotency_key": "k1",
    }


async def _jobs(queue: Queue) -> list[Job]:
    return list(await queue.jobs.list(owner=None))


def _vienna(hour: int, minute: int, day: int = 0) -> int:
    """The clocks of these tests stand at 2027-01-15T08:00:00Z, and Vienna is an hour ahead."""
    return int(datetime(2027, 1, 16 + day, hour - 1, minute, tzinfo=UTC).timestamp())
