"""What a job that has a graph executed may ask for: nothing of anybody but its owner."""

import asyncio
from typing import Any

import pytest

from duly import every
from duly.application.directs import Directs
from duly.bootstrap import Queue, Registry, Settings
from duly.domain.errors import InvalidInput, Unavailable
from duly.domain.executions import GraphResult
from duly.domain.groups import NewGroup, NewMember
from duly.domain.ids import JobId, JobKey, Owner
from duly.domain.jobs import Ending, JobStatus, NewJob, Suspended
from duly.domain.schedules import Target
from duly.domain.templates import NewTemplate
from duly.ports.clock import Clock
from duly.ports.storage import Storage, Work
from tests.contracts.graphs import GRAPH, PatientClock, house
from tests.contracts.world import WIDE, ClockedStorage, Hand, T, World

SLOT = "news:2030-01-01T00:00:00Z"


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


async def answers(_: Any) -> dict[str, Any]:
    return {}


async def run(world: World) -> Ending | Suspended:
    """The next job, as a worker runs it."""
    registry = Registry()
    registry.add(GRAPH, answers)
    hand = await world.hand()
    (claimed,) = await hand.claim()
    handler = world.queue.graph_runs(registry)
    try:
        return await handler(claimed)
    finally:
        await handler.close()


async def puts_from_a_template(world: World, owner: str, *, key: str | None = None, **params: Any) -> None:
    template = NewTemplate(name="mine", kind="graph.run", params={"graph_id": GRAPH, **params}, pool=WIDE)
    await world.queue.templates.create(template, owner=owner)
    await world.queue.jobs.put_from("mine", {}, owner=owner, key=None if key is None else JobKey(key))


async def keys(world: World) -> list[str]:
    return [key for (key,) in await world.rows("SELECT idempotency_key FROM execution_requests")]


@pytest.mark.req("GRAPH-04", error=True)
async def test_somebody_elses_grant_pays_for_nobody_who_knows_its_id(world: World) -> None:
    home = await house(world.queue, answers)
    await puts_from_a_template(world, "eve", grant_id=home.grant_id)

    ending = await run(world)

    assert isinstance(ending, Ending)
    assert (ending.status, str(ending.error).partition(":")[0]) == (JobStatus.FAILED, "unknown_grant")
    assert await keys(world) == []


@pytest.mark.req("GRAPH-04", error=True)
async def test_a_slots_job_that_is_given_somebody_elses_grant_while_it_waits_is_refused(world: World) -> None:
    home = await house(world.queue, answers)
    target = Target(kind="graph.run", params={"graph_id": GRAPH}, pool=WIDE)
    await world.queue.schedules.create(owner="eve", schedule_id="e", cadence=every("1h"), target=target)
    started = await world.queue.schedules.run_now("e", owner="eve")
    given = {"graph_id": GRAPH, "grant_id": home.grant_id}
    await world.queue.jobs.edit_params(started.job_id, given, owner="eve")  # type: ignore[arg-type]

    ending = await run(world)

    assert isinstance(ending, Ending)
    assert ending.status is JobStatus.FAILED
    assert await keys(world) == []


class Away(ClockedStorage):
    """Its first reads and writes meet nobody."""

    def __init__(self, storage: Storage, clock: Clock, times: int) -> None:
        super().__init__(storage, clock)
        self.left = times

    async def transact(self, work: Work[T], *, single: bool = False) -> T:
        self._answer()
        return await super().transact(work, single=single)

    async def read(self, work: Work[T]) -> T:
        self._answer()
        return await super().read(work)

    def _answer(self) -> None:
        self.left -= 1
        if self.left >= 0:
            raise Unavailable("the store is away")


async def test_a_store_that_is_away_for_a_while_does_not_end_the_run(world: World) -> None:
    home = await house(world.queue, answers)
    await world.puts(kind="graph.run", params={"graph_id": GRAPH, "grant_id": home.grant_id})
    (claimed,) = await (await world.hand()).claim()
    away = Away(world.queue.storage, world.clock, times=3)
    queue = Queue.on(away, world.dice, Settings(database_url=world.place))
    registry = Registry()
    registry.add(GRAPH, answers)
    handler = queue.graph_runs(registry)
    running = asyncio.create_task(handler(claimed))
    try:
        while not running.done():
            await world.clock.pass_slowly(1)  # type: ignore[attr-defined]
        ending = await running
    finally:
        await handler.close()

    assert isinstance(ending, Ending)
    assert (ending.status, away.left < 0) == (JobStatus.COMPLETED, True), ending.error


async def test_however_many_ask_at_once_an_owner_is_given_one_account(world: World) -> None:
    payer = world.queue.launches.payer

    found = await asyncio.gather(*(payer.account_of(Owner("new")) for _ in range(4)))

    assert len(set(found)) == len(await world.queue.accounts.list(owner="new")) == 1


@pytest.mark.parametrize("named", [{"key": SLOT}, {"params_key": SLOT}], ids=["as-its-key", "in-its-params"])
async def test_nobody_takes_the_key_of_somebody_elses_slot(world: World, named: dict[str, str]) -> None:
    account = await world.queue.accounts.create(owner="eve", name="main")
    grant = await world.queue.grants.create(owner="eve", account_id=account.id, scopes=["graph:execute:*"])
    inside = {"key": named["params_key"]} if "params_key" in named else {}
    template = NewTemplate(
        name="mine", kind="graph.run", params={"graph_id": GRAPH, "grant_id": grant.id, **inside}, pool=WIDE
    )
    await world.queue.templates.create(template, owner="eve")
    put = await world.queue.jobs.put_from("mine", {}, owner="eve", key=JobKey(named["key"]) if "key" in named else None)

    ending = await run(world)

    assert isinstance(ending, Ending)
    assert (ending.status, await keys(world)) == (JobStatus.COMPLETED, [put.job_id])


async def test_a_job_that_an_operator_put_names_its_grant_and_its_key(world: World) -> None:
    home = await house(world.queue, answers)
    await world.puts(kind="graph.run", params={"graph_id": GRAPH, "grant_id": home.grant_id, "key": "once"})

    ending = await run(world)

    assert isinstance(ending, Ending)
    assert (ending.status, await keys(world)) == (JobStatus.COMPLETED, ["once"])


@pytest.mark.req("GRAPH-02", error=True)
async def test_a_template_is_no_way_around_the_grant_and_the_price_of_a_graphs_schedule(world: World) -> None:
    paid = NewTemplate(name="paid", kind="graph.run", params={"graph_id": GRAPH, "input": {"model": "gpt-4o"}})
    await world.queue.templates.create(paid, owner="ann")

    with pytest.raises(InvalidInput, match=r"name graph\.run itself"):
        await world.queue.schedules.create(owner="ann", cadence=every("1h"), target=Target(kind="template:paid"))


@pytest.mark.req("GRAPH-14")
async def test_a_slot_that_is_tried_again_by_hand_has_the_outcome_that_its_key_has(world: World) -> None:
    """Its worker died before it could say so: the graph is not run a second time."""
    await house(world.queue, answers)
    target = Target(kind="graph.run", params={"graph_id": GRAPH}, pool=WIDE)
    await world.queue.schedules.create(owner="ann", schedule_id="a", cadence=every("1h"), target=target)
    started = await world.queue.schedules.run_now("a", owner="ann")
    registry, hand = Registry(), await world.hand()
    registry.add(GRAPH, answers)
    handler = world.queue.graph_runs(registry)
    try:
        (claimed,) = await hand.claim()
        await handler(claimed)
        await hand.fail(claimed)
        await world.queue.jobs.retry(JobId(str(started.job_id)), owner="ann")
        (again,) = await hand.claim()
        ending = await handler(again)
    finally:
        await handler.close()

    assert isinstance(ending, Ending)
    assert (again.ledger_run, ending.status, len(await keys(world))) == (None, JobStatus.COMPLETED, 1), ending.error


class Fickle:
    """Fails as often as it is told to."""

    def __init__(self, *, fails: int) -> None:
        self.fails = fails
        self.calls = 0

    async def __call__(self, _: Any) -> dict[str, Any]:
        self.calls += 1
        if self.calls <= self.fails:
            raise RuntimeError("not yet")
        return {"n": self.calls}


class Retried:
    """A job that has a graph executed, run by a worker and tried again by hand."""

    def __init__(self, world: World, graph: Any) -> None:
        registry = Registry()
        registry.add(GRAPH, graph)
        self.world = world
        self.handler = world.queue.graph_runs(registry)

    async def run(self, hand: Hand, *, dies: bool = False) -> Ending:
        (claimed,) = await hand.claim()
        ending = await self.handler(claimed)
        assert isinstance(ending, Ending)
        await (hand.fail(claimed) if dies else hand.finish(claimed, ending=ending))
        return ending


@pytest.mark.req("DEC-007")
@pytest.mark.parametrize("of_a_slot", [True, False])
async def test_what_failed_is_executed_anew_when_a_person_tries_it_again(world: World, of_a_slot: bool) -> None:
    await house(world.queue, answers)
    if of_a_slot:
        target = Target(kind="graph.run", params={"graph_id": GRAPH}, pool=WIDE)
        await world.queue.schedules.create(owner="ann", schedule_id="a", cadence=every("1h"), target=target)
        job_id = JobId(str((await world.queue.schedules.run_now("a", owner="ann", key="k")).job_id))
    else:
        (grant,) = await world.queue.grants.list(owner="ann")
        await puts_from_a_template(world, "ann", grant_id=grant.id)
        ((job_id,),) = await world.rows("SELECT id FROM jobs")
    retried, hand = Retried(world, graph := Fickle(fails=2)), await world.hand()
    try:
        endings = [await retried.run(hand)]
        for attempt in range(2):
            await world.queue.jobs.retry(job_id, owner="ann", key=f"press {attempt}")
            endings.append(await retried.run(hand))
    finally:
        await retried.handler.close()

    assert [ending.status for ending in endings] == [JobStatus.FAILED, JobStatus.FAILED, JobStatus.COMPLETED]
    assert graph.calls == 3
    first = min(await keys(world))
    assert sorted(await keys(world)) == [first, f"{first}/2", f"{first}/3"]
    schedules = await world.rows("SELECT DISTINCT schedule_id FROM holds")
    assert schedules == [("a",) if of_a_slot else (None,)]
    await world.keeps_the_laws()


@pytest.mark.req("GRAPH-16")
async def test_a_schedule_may_have_any_name_and_its_graph_is_executed(world: World) -> None:
    await house(world.queue, answers)
    target = Target(kind="graph.run", params={"graph_id": GRAPH}, pool=WIDE)
    names = ["mörgen früh", "m%C3%B6rgen%20fr%C3%BCh", "~m%C3%B6rgen%20fr%C3%BCh", "晨" * 64]
    for name in names:
        await world.queue.schedules.create(owner="ann", schedule_id=name, cadence=every("1h"), target=target)
        await world.queue.schedules.run_now(name, owner="ann", key="k")

    endings = [await run(world) for _ in names]

    assert [ending.status for ending in endings if isinstance(ending, Ending)] == [JobStatus.COMPLETED] * 4
    assert len(set(await keys(world))) == 4


@pytest.mark.req("DEC-007", error=True)
async def test_an_execution_anew_whose_worker_dies_is_not_executed_once_more(world: World) -> None:
    home = await house(world.queue, answers)
    await puts_from_a_template(world, "ann", grant_id=home.grant_id)
    ((job_id,),) = await world.rows("SELECT id FROM jobs")
    retried, hand = Retried(world, graph := Fickle(fails=1)), await world.hand()
    try:
        await retried.run(hand)
        await world.queue.jobs.retry(job_id, owner="ann")
        await retried.run(hand, dies=True)
        world.clock.advance(3_600)
        await world.queue.jobs.stage()
        ending = await retried.run(hand)
    finally:
        await retried.handler.close()

    assert (ending.status, graph.calls) == (JobStatus.COMPLETED, 2)
    assert sorted(await keys(world)) == [job_id, f"{job_id}/2"]


@pytest.mark.req("DEC-007")
async def test_a_key_that_is_too_long_for_a_number_is_executed_anew_under_its_chain(world: World) -> None:
    home = await house(world.queue, answers)
    given = {"graph_id": GRAPH, "grant_id": home.grant_id, "key": "k" * 255}
    job_id = await world.put("graph.run", params=given)
    retried, hand = Retried(world, graph := Fickle(fails=1)), await world.hand()
    try:
        await retried.run(hand)
        await world.queue.jobs.retry(job_id)
        ending = await retried.run(hand)
    finally:
        await retried.handler.close()

    assert (ending.status, graph.calls) == (JobStatus.COMPLETED, 2)
    assert sorted(await keys(world)) == [f"{job_id}/2", "k" * 255]


async def waits(_: Any) -> GraphResult:
    return GraphResult(output={"q": 1}, waits=True)


@pytest.mark.parametrize(
    ("graph", "expected"),
    [(answers, (JobStatus.COMPLETED, None)), (waits, (JobStatus.FAILED, "cancelled"))],
    ids=["over", "waiting"],
)
async def test_a_grant_revoked_meanwhile_changes_no_outcome_and_leaves_nothing_waiting(
    world: World, graph: Any, expected: tuple[JobStatus, str | None]
) -> None:
    home = await house(world.queue, graph)
    given = {"graph_id": GRAPH, "grant_id": home.grant_id, "key": "k"}
    await home.executions.execute(home.asks("k"))
    await world.puts(kind="graph.run", params=given)
    await world.queue.grants.revoke(home.grant_id, owner="ann")

    ending = await run(world)

    assert isinstance(ending, Ending)
    rows = await world.rows("SELECT status, error_code FROM execution_requests")
    assert (ending.status, rows) == (expected[0], [("done", expected[1])]), ending.error


@pytest.mark.req("GRAPH-04", error=True)
async def test_a_member_of_a_group_is_its_owners_too(world: World) -> None:
    home = await house(world.queue, answers)
    graph = NewJob(kind="graph.run", params={"graph_id": GRAPH, "grant_id": home.grant_id}, pool=WIDE)
    await world.queue.groups.create(NewGroup(members=[NewMember(job=graph)]), owner="eve")

    ending = await run(world)

    assert isinstance(ending, Ending)
    assert (ending.status, await keys(world)) == (JobStatus.FAILED, []), ending.error


@pytest.mark.req("GRAPH-04", error=True)
async def test_a_graph_is_not_called_directly_where_nobody_would_know_whose_it_is(world: World) -> None:
    home = await house(world.queue, answers)
    template = NewTemplate(
        name="mine", kind="graph.run", params={"graph_id": GRAPH, "grant_id": home.grant_id}, pool=WIDE
    )
    await world.queue.templates.create(template, owner="eve")
    directs = Directs(world.queue.storage, world.dice)

    with pytest.raises(InvalidInput, match="not called directly"):
        await directs.from_template("mine", None, owner="eve")
    with pytest.raises(InvalidInput, match="not called directly"):
        await directs.from_job(NewJob(kind="graph.run", params={}, pool=WIDE))
