"""Jobs as callers meet them: those of their own runs, by id, page by page."""

import pytest

from duly.application.audit import Audit
from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, ScheduleId
from duly.domain.instants import SECOND
from duly.domain.jobs import JobState, JobStatus, UnknownJob
from duly.domain.schedules import UnknownSchedule
from tests.contracts.keeping import Keeping
from tests.contracts.world import WIDE, World


async def owned(world: World) -> tuple[JobId, JobId, JobId]:
    """A job of ann's, one of bob's and one of nobody's."""
    keeping = Keeping(world)
    jobs = []
    for owner in ("ann", "bob"):
        await keeping.schedule(f"of-{owner}", owner=owner)
        run = await keeping.schedules.run_now(f"of-{owner}", owner=owner)
        assert run.job_id is not None
        jobs.append(run.job_id)
    return jobs[0], jobs[1], await world.put()


async def test_an_owner_sees_and_cancels_the_jobs_of_its_runs_and_an_operator_all(world: World) -> None:
    anns, bobs, nobodys = await owned(world)
    jobs = world.queue.jobs

    assert [job.id for job in await jobs.list(owner="ann")] == [anns]
    assert [job.id for job in await jobs.list(owner=None)] == [anns, bobs, nobodys]
    assert (await jobs.find(anns, owner="ann")).id == anns
    assert (await jobs.find(nobodys, owner=None)).id == nobodys
    for job_id in (bobs, nobodys, JobId("job_nowhere")):
        with pytest.raises(UnknownJob):
            await jobs.find(job_id, owner="ann")
        with pytest.raises(UnknownJob):
            await jobs.cancel(job_id, owner="ann", reason="mine")
    assert await world.state(bobs) == "ready"
    assert await jobs.cancel(anns, owner="ann", reason="mine")
    assert await jobs.cancel(nobodys, reason="an operator's")


async def test_ended_jobs_are_listed_for_their_owner_newest_first(world: World) -> None:
    anns, bobs, nobodys = await owned(world)
    await world.queue.jobs.cancel(nobodys, reason="not needed")
    await (await world.hand()).work_off()
    ended = world.queue.jobs.ended

    assert [job.id for job in await ended(owner="ann")] == [anns]
    assert [job.id for job in await ended(owner=None)] == [nobodys, bobs, anns]
    assert [job.id for job in await ended(owner=None, status=JobStatus.CANCELLED)] == [nobodys]
    assert [job.id for job in await ended(owner="ann", status=JobStatus.CANCELLED)] == []
    assert [job.id for job in await ended(owner=None, before=bobs)] == [anns]
    assert (await world.queue.jobs.find(anns, owner="ann")).id == anns
    assert await world.queue.jobs.list(owner=None) == []


async def test_pages_of_jobs_have_no_holes_and_no_doubles_while_jobs_come_and_go(world: World) -> None:
    made = [await world.put(f"n{n}") for n in range(7)]
    seen: list[JobId] = []
    while page := await world.queue.jobs.list(owner=None, after=seen[-1] if seen else None, most=2):
        seen += [job.id for job in page]
        await world.queue.jobs.cancel(seen[-1], reason="gone once seen")

    assert seen == made
    cancelled = [*made[1::2], made[-1]]
    old: list[JobId] = []
    while ended := await world.queue.jobs.ended(owner=None, before=old[-1] if old else None, most=2):
        old += [job.id for job in ended]
        await world.queue.jobs.cancel(await world.put("later"), reason="newer than the page")
    assert old == cancelled[::-1]


async def test_a_list_can_be_of_one_pool_and_one_state(world: World) -> None:
    await world.pool("other", 1)
    here, there = await world.put(), await world.put(pool="other")
    later = await world.put(run_at=world.clock.now() + 60 * SECOND)

    async def listed(**asked: object) -> list[JobId]:
        return [job.id for job in await world.queue.jobs.list(owner=None, **asked)]  # type: ignore[arg-type]

    assert await listed(pool="other") == [there]
    assert await listed(state=JobState.SCHEDULED) == [later]
    assert await listed(pool=WIDE, state=JobState.READY) == [here]
    for wrong in ({"most": 0}, {"most": 1_001}, {"after": ""}, {"pool": ""}):
        with pytest.raises(InvalidInput):
            await listed(**wrong)


async def test_why_and_audit_answer_an_owner_about_its_own_schedules_only(world: World) -> None:
    await owned(world)
    mine, other = ScheduleId("of-ann"), ScheduleId("of-bob")

    assert (await world.queue.why.schedule(mine, owner="ann")).answer == "active"
    for refused in (world.queue.why.schedule(other, owner="ann"), world.queue.why.slot(other, 0, owner="ann")):
        with pytest.raises(UnknownSchedule):
            await refused
    audit = world.queue.audit
    assert isinstance(audit, Audit)
    assert [verdict.schedule.id async for verdict in audit.verdicts(owner="ann")] == [mine]
    assert [verdict.schedule.id async for verdict in audit.verdicts()] == [mine, other]
    with pytest.raises(UnknownSchedule):
        [verdict async for verdict in audit.verdicts(other, owner="ann")]
