"""Runs of different schedules do not take each other's keys, on every store."""

import pytest

from duly.domain import schedules as domain
from duly.domain.errors import InvalidInput
from duly.domain.jobs import Job
from duly.domain.runs import Run, RunStatus
from duly.domain.schedules import Target
from tests.contracts.keeping import Keeping
from tests.contracts.world import WIDE, World


async def _key(world: World, run: Run) -> str | None:
    assert run.job_id is not None, run.error_message
    job = await world.queue.jobs.get(run.job_id)
    assert isinstance(job, Job)
    return job.key


@pytest.mark.req("GRAPH-07")
async def test_two_runs_by_hand_whose_names_read_alike_are_two_jobs(world: World) -> None:
    keeping = Keeping(world)
    for schedule_id in ("b", "a:b"):
        await keeping.schedule(schedule_id, target=Target(kind="k", pool=WIDE), overlap="allow")

    long = await keeping.schedules.run_now("b", owner="ann", key="x:a")
    short = await keeping.schedules.run_now("a:b", owner="ann", key="x")

    assert {long.status, short.status} == {RunStatus.PENDING}
    assert await _key(world, long) != await _key(world, short)
    assert await keeping.schedules.run_now("b", owner="ann", key="x:a") == long
    # The worker tells each handler its own schedule.
    hand = await world.hand()
    named = {job.id: domain.schedule_of_key(str(job.key), job.lane) for job in await hand.claim(2)}
    assert named == {long.job_id: "b", short.job_id: "a:b"}


@pytest.mark.req("GRAPH-07", error=True)
async def test_a_schedule_that_would_have_the_keys_of_runs_by_hand_is_refused_and_nothing_is_kept(world: World) -> None:
    keeping = Keeping(world)

    for schedule_id in ("manual:x:news", "backfill:x:news"):
        with pytest.raises(InvalidInput, match="begins the keys of runs that no cadence planned"):
            await keeping.schedule(schedule_id)

    assert await keeping.schedules.list(owner=None) == []


async def test_one_that_has_such_an_id_already_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = Keeping(world)
    with monkeypatch.context() as before:
        before.setattr(domain, "require_no_own_key", lambda _: None)
        await keeping.schedule("manual:x:news", overlap="allow")

    await keeping.at(1)
    await keeping.schedules.pause("manual:x:news", owner="ann")
    await keeping.schedules.resume("manual:x:news", owner="ann")
    await keeping.at(2)

    assert [run.status for run in await keeping.runs("manual:x:news")] == [RunStatus.PENDING] * 2
