"""Runs as callers meet them: their own only, newest first, page by page, and cancelled when they say so."""

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import FinishedJob, Job
from duly.domain.retries import RetryPolicy
from duly.domain.runs import Run, RunAlreadyEnded, RunKind, RunStatus, UnknownRun
from duly.domain.schedules import Target, UnknownSchedule
from tests.contracts.keeping import Keeping
from tests.contracts.world import WIDE, World


async def test_a_run_is_its_owners_and_nobody_elses(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(owner="ann")
    run = await keeping.schedules.run_now("s", owner="ann")
    runs = world.queue.runs

    assert await runs.get(run.id, owner="ann") == await runs.get(run.id, owner=None) == run
    for refused in (
        runs.get(run.id, owner="bob"),
        runs.cancel(run.id, owner="bob", reason="mine"),
        runs.attempts(run.id, owner="bob"),
        runs.get("run_nowhere", owner=None),
    ):
        with pytest.raises(UnknownRun):
            await refused
    with pytest.raises(UnknownSchedule):
        await runs.list(owner="bob", schedule_id="s")
    assert await runs.list(owner="bob") == []
    assert (await runs.get(run.id, owner="ann")).status is RunStatus.PENDING


async def test_pages_have_no_holes_and_no_doubles_while_runs_are_added(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule("a", owner="ann")
    await keeping.schedule("b", owner="bob")
    made = []
    for n in range(10):
        made.append((await keeping.schedules.run_now("a", owner=None, key=f"k{n}")).id)
        await keeping.schedules.run_now("b", owner=None, key=f"k{n}")

    seen: list[RunId] = []
    while page := await world.queue.runs.list(owner="ann", before=seen[-1] if seen else None, most=3):
        seen += [run.id for run in page]
        await keeping.schedules.run_now("a", owner=None, key=f"later {len(seen)}")

    assert seen == made[::-1]
    everybodys = await world.queue.runs.list(owner=None, most=1_000)
    assert [run.id for run in everybodys] == sorted((run.id for run in everybodys), reverse=True)
    assert {run.owner for run in everybodys} == {"ann", "bob"}


async def test_a_list_can_be_of_one_schedule_one_status_and_one_kind(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule("a", overlap="allow")
    await keeping.schedule("b", overlap="allow")
    await keeping.at(2)
    by_hand = await keeping.schedules.run_now("a", owner="ann")
    runs = world.queue.runs
    await runs.cancel((await runs.list(owner="ann", schedule_id="a", kind=RunKind.SLOT))[-1].id, owner=None, reason="x")

    assert {run.schedule_id for run in await runs.list(owner="ann", schedule_id="a")} == {"a"}
    assert [run.id for run in await runs.list(owner="ann", kind=RunKind.MANUAL)] == [by_hand.id]
    assert [run.detail for run in await runs.list(owner=None, status=RunStatus.CANCELLED)] == ["x"]
    asked = await runs.list(owner="ann", schedule_id="a", status=RunStatus.PENDING, kind=RunKind.SLOT)
    assert [run.scheduled_for for run in asked] == [world.clock.now()]
    assert not await runs.list(owner="ann", schedule_id="b", status=RunStatus.CANCELLED)


async def test_the_pages_of_one_schedule_hold_each_run_once_by_slot(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(3)
    for key in ("x", "y"):
        await keeping.schedules.run_now("s", owner="ann", key=key)
    every = await world.queue.runs.list(owner="ann", schedule_id="s")

    pages: list[Run] = []
    last = None
    while page := await world.queue.runs.list(owner="ann", schedule_id="s", before=last, most=2):
        pages += page
        last = page[-1].id

    assert pages == list(every)
    assert len({run.id for run in pages}) == len(pages) > 4
    assert [run.scheduled_for for run in pages] == sorted((run.scheduled_for for run in pages), reverse=True)


@pytest.mark.parametrize("given", [{"most": 0}, {"most": 1_001}, {"before": ""}, {"owner": "\n"}, {"schedule_id": ""}])
async def test_a_list_that_cannot_be_meant_is_refused(world: World, given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        await world.queue.runs.list(**{"owner": None, **given})  # type: ignore[arg-type]


async def test_a_run_that_waits_ends_with_its_job_when_it_is_cancelled(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    run = await keeping.schedules.run_now("s", owner="ann")

    ended = await world.queue.runs.cancel(run.id, owner="ann", reason="not today")

    assert (ended.status, ended.detail, ended.completed_at) == (RunStatus.CANCELLED, "not today", world.clock.now())
    assert await world.state(run.job_id or JobId("")) == "CANCELLED"
    with pytest.raises(RunAlreadyEnded):
        await world.queue.runs.cancel(run.id, owner="ann", reason="not today")


async def test_a_run_that_runs_is_asked_to_stop_and_loses_its_claim_if_it_does_not(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    run = await keeping.schedules.run_now("s", owner="ann")
    hand = await world.hand()
    (job,) = await hand.claim()

    asked = await world.queue.runs.cancel(run.id, owner="ann", reason="enough")

    assert asked.status is RunStatus.RUNNING
    assert (await world.queue.sessions.beat(hand.session)).cancelled == {job.id: "enough"}
    await keeping.at(0.4)
    assert (await world.queue.runs.get(run.id, owner="ann")).status is RunStatus.RUNNING
    await keeping.at(0.6)
    ended = await world.queue.runs.get(run.id, owner="ann")
    assert (ended.status, ended.detail) == (RunStatus.CANCELLED, "enough")
    assert (await hand.finish(job)).stale == [job.id]


async def test_a_run_that_has_ended_cannot_be_cancelled(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()
    run = await keeping.schedules.run_now("s", owner="ann")
    await (await world.hand()).work_off()

    with pytest.raises(RunAlreadyEnded):
        await world.queue.runs.cancel(run.id, owner="ann", reason="too late")

    assert (await world.queue.runs.get(run.id, owner="ann")).status is RunStatus.SUCCESS


async def test_the_attempts_of_a_run_are_its_jobs_first_to_last(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(target=Target(kind="s", pool=WIDE, retry=RetryPolicy(max_attempts=2)))
    run = await keeping.schedules.run_now("s", owner="ann")
    hand = await world.hand()
    await hand.fail(*await hand.claim())

    first, second = await world.queue.runs.attempts(run.id, owner="ann")

    assert isinstance(first, FinishedJob)
    assert isinstance(second, Job)
    assert (first.id, second.retry_of) == (run.job_id, run.job_id)


async def test_a_skipped_run_has_no_attempts(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="skip")
    await keeping.at(2)
    (skipped,) = await world.queue.runs.list(owner="ann", status=RunStatus.SKIPPED)

    assert await world.queue.runs.attempts(skipped.id, owner="ann") == []


@pytest.mark.req("GRAPH-12")
async def test_the_last_run_of_each_schedule_is_its_newest_slot_that_ran_or_runs(world: World) -> None:
    keeping = Keeping(world)
    for name in ("ran", "runs", "skips", "waits"):
        await keeping.schedule(name, overlap="skip", target=Target(kind=name, pool=WIDE))
    await keeping.at(1)
    hand = await world.hand()
    by_kind = {job.kind: job for job in await hand.claim(4)}
    await hand.finish(by_kind["ran"], by_kind["waits"])
    await keeping.at(2)  # `runs` and `skips` still run: their second slots are skipped, those of the others wait
    await hand.finish(by_kind["skips"])

    last = await world.queue.runs.last_of([ScheduleId(name) for name in ("ran", "runs", "skips", "waits", "unknown")])

    first_slot = Instant(world.clock.now() - 60 * SECOND)
    assert {name: (run.status, run.scheduled_for) for name, run in last.items()} == {
        "ran": (RunStatus.SUCCESS, first_slot),
        "runs": (RunStatus.RUNNING, first_slot),
        "skips": (RunStatus.SUCCESS, first_slot),
        "waits": (RunStatus.SUCCESS, first_slot),
    }
    await hand.work_off()
    again = await world.queue.runs.last_of([ScheduleId("ran"), ScheduleId("runs")])
    assert again[ScheduleId("ran")].scheduled_for == world.clock.now()


@pytest.mark.req("GRAPH-12")
async def test_a_run_that_failed_is_the_last_one_and_one_cancelled_before_it_began_is_not(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="allow")
    await keeping.at(1)
    hand = await world.hand()
    await hand.fail(*await hand.claim())
    await keeping.at(2)
    waiting = (await world.queue.runs.list(owner="ann", status=RunStatus.PENDING))[0]
    await world.queue.runs.cancel(waiting.id, owner="ann", reason="not today")

    (last,) = (await world.queue.runs.last_of([ScheduleId("s")])).values()

    assert (last.status, last.error_message) == (RunStatus.ERROR, "as asked")


@pytest.mark.req("GRAPH-12", error=True)
async def test_a_page_of_schedules_has_an_end(world: World) -> None:
    assert await world.queue.runs.last_of([]) == {}
    with pytest.raises(InvalidInput):
        await world.queue.runs.last_of([ScheduleId(f"s{n}") for n in range(1_001)])
