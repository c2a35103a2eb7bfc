"""What an executor elsewhere is told of a run, on every store: its slot stays its slot, whoever tries it again."""

from typing import Any

import pytest

from duly import every
from duly.bootstrap import Registry
from duly.domain.executions import ExecutionRequest
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, written
from duly.domain.jobs import JobStatus, Suspended
from duly.domain.keys import in_ascii
from duly.domain.schedules import Target, slot_key
from duly.domain.workflows import run_key
from tests.contracts.graphs import PatientClock
from tests.contracts.test_call_backs import FAILED, GRAPHS, Hosted, firm

FLOW = "dag:news@1"
SLOT = Instant(1_700_000_000 * SECOND)


@pytest.fixture
def world(store: str, place: str) -> Hosted:
    world = Hosted(store, place)
    world.clock = PatientClock()
    return world


def meta(world: Hosted, number: int) -> dict[str, Any]:
    told = world.executor.received[number].told["meta"]
    return {name: told[name] for name in ("source", "scheduled_for", "idempotency_key")}


@pytest.mark.req("CRON-10")
async def test_a_launch_that_is_tried_again_is_for_the_same_moment_under_a_key_of_its_own(world: Hosted) -> None:
    home = await firm(world)
    launch = await world.queue.launches.launch("news", owner="ann", key="k", scheduled_for=SLOT)
    claimed = await home.claim()
    answer = await home.handled(claimed)
    assert isinstance(answer, Suspended)
    await world.queue.sessions.suspend(home.hand.session, claimed, answer.execution)
    await home.call_back(await home.execution(launch), FAILED)
    assert (await home.goes_on()).status is JobStatus.FAILED

    await world.queue.jobs.retry(claimed.id, owner="ann")
    assert isinstance(await home.handled(await home.claim()), Suspended)

    first = {"source": "schedule", "scheduled_for": written(SLOT), "idempotency_key": "k"}
    assert [meta(world, 0), meta(world, 1)] == [first, {**first, "idempotency_key": f"{launch.execution_key}/2"}]


@pytest.mark.req("CRON-10")
@pytest.mark.parametrize("name", ["zurich", "zürich"])
async def test_a_slot_is_told_whatever_its_schedule_is_called_and_however_often_it_is_tried(
    world: Hosted, name: str
) -> None:
    await firm(world)
    target = Target(kind="graph.run", params={"graph_id": FLOW}, pool=GRAPHS)
    await world.queue.schedules.create(owner="ann", schedule_id=name, cadence=every("1h"), target=target)
    (account,) = await world.queue.accounts.list(owner="ann")
    grant = await world.queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:*"])
    key = in_ascii(slot_key(ScheduleId(name), SLOT // SECOND))
    executions = world.queue.executions(Registry())

    for each in (key, f"{key}/2"):
        await executions.execute(
            ExecutionRequest(key=each, graph_id=FLOW, grant_id=grant.id, input={}, schedule_id=name)
        )

    word = run_key(name, SLOT // SECOND)
    first = {"source": "schedule", "scheduled_for": written(SLOT), "idempotency_key": word}
    assert [meta(world, 0), meta(world, 1)] == [first, {**first, "idempotency_key": f"{key}/2"}]
