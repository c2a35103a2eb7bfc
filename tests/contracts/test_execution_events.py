"""What a run's graph told, page by page, for whoever owns the run."""

from typing import Any

import pytest

from duly import every
from duly.domain.executions import Claim, EventKind, ExecutionEvent
from duly.domain.ids import PoolName
from duly.domain.payloads import json_of
from duly.domain.runs import Run, UnknownRun
from duly.domain.schedules import Target
from duly.ports.storage import Transaction
from tests.contracts.graphs import GRAPH, House, house
from tests.contracts.world import World


async def answers(_: Any) -> dict[str, Any]:
    return {}


async def triggered(world: World, owner: str = "ann", *, schedule_id: str = "s", **params: Any) -> Run:
    target = Target(kind="graph.run", pool=PoolName("graphs"), params={"graph_id": GRAPH, **params})
    await world.queue.schedules.create(owner=owner, schedule_id=schedule_id, cadence=every("1h"), target=target)
    return await world.queue.schedules.run_now(schedule_id, owner=owner, key="now")


async def claimed(world: World, home: House, key: str) -> Claim:
    execution = await home.begins(home.asks(key))
    return execution.claim


async def tell(world: World, claim: Claim, first: int, last: int) -> None:
    data = json_of({"text": "x"}, field="data")
    events = [
        ExecutionEvent(claim.run_id, seq, claim.attempt, world.clock.now(), EventKind.LOG, data)
        for seq in range(first, last + 1)
    ]

    async def work(tx: Transaction) -> None:
        await tx.executions.add_events(events)

    await world.queue.storage.transact(work)


async def key_of(world: World, run: Run) -> str:
    job = await world.queue.jobs.get(run.job_id)  # type: ignore[arg-type]
    return str(job.key)


async def seqs(world: World, run: Run, owner: str | None = "ann", **asked: Any) -> list[int]:
    return [event.seq for event in await world.queue.execution_events.of_run(run.id, owner=owner, **asked)]


@pytest.mark.req("GRAPH-30")
async def test_they_are_found_while_the_graph_runs_and_after_the_ledger_names_its_execution(world: World) -> None:
    home = await house(world.queue, answers)
    run = await triggered(world, grant_id=home.grant_id)
    assert await seqs(world, run) == []
    claim = await claimed(world, home, await key_of(world, run))
    await tell(world, claim, 1, 5)

    assert await seqs(world, run) == [1, 2, 3, 4, 5]
    assert await seqs(world, run, after=2, most=2) == [3, 4]
    await world.queue.runs.note_execution(run.id, execution=claim.run_id, trace_id=None)
    assert await seqs(world, run, owner=None, after=4) == [5]


async def test_another_owner_meets_no_such_run(world: World) -> None:
    home = await house(world.queue, answers)
    run = await triggered(world, grant_id=home.grant_id)

    with pytest.raises(UnknownRun):
        await seqs(world, run, owner="bob")


async def test_a_job_that_names_somebody_elses_key_shows_nothing_of_it(world: World) -> None:
    home = await house(world.queue, answers)
    claim = await claimed(world, home, "of-ann")
    await tell(world, claim, 1, 3)

    run = await triggered(world, "bob", schedule_id="b")
    await world.queue.jobs.edit_params(run.job_id, {"graph_id": GRAPH, "key": "of-ann"}, owner="bob")  # type: ignore[arg-type]

    assert await seqs(world, run, owner="bob") == []


async def test_a_run_of_a_hundred_thousand_events_is_read_in_pages(world: World) -> None:
    home = await house(world.queue, answers)
    run = await triggered(world, grant_id=home.grant_id)
    claim = await claimed(world, home, await key_of(world, run))
    for first in range(1, 100_001, 5_000):
        await tell(world, claim, first, first + 4_999)

    seen, pages = 0, 0
    while page := await seqs(world, run, after=seen):
        assert page == list(range(seen + 1, seen + 1 + len(page)))
        assert len(page) <= 1_000
        seen, pages = page[-1], pages + 1

    assert (seen, pages) == (100_000, 100)
