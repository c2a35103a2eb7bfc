"""Declared schedules on both stores: they become so, stay paused, are retired, and their slots reach the functions."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from duly import Duly, JobContext, Settings, Slot, cron, every, once
from duly.app.refusals import ScheduleTaken
from duly.domain.pools import Pool, PoolMode, UnknownPool
from duly.domain.runs import RunStatus
from duly.domain.schedules import ScheduleState, Target

HOURLY, DAILY = every("1h"), every("1d")


async def test_a_declared_schedule_fires_and_its_function_gets_its_slot(app: Duly) -> None:
    slots: list[tuple[Slot, str]] = []

    @app.job(schedule=every("1s"), overlap="queue", params={"to": "you"})
    async def tick(to: str, slot: Slot, context: JobContext) -> None:
        assert context.slot == slot
        slots.append((slot, to))
        if len(slots) == 2:
            app.stop()

    began = datetime.now(UTC).replace(microsecond=0)
    await app.run()

    (first, to), (second, _) = slots[:2]
    assert (first.schedule_id, to) == ("tick", "you")
    assert first.key == f"tick:{first}"
    assert began <= first.at < second.at
    async with app:
        runs = {run.scheduled_for: run.status for run in await app.queue.schedules.runs("tick", owner="local")}
        assert [runs[int(slot.at.timestamp() * 1e6)] for slot, _ in slots] == [RunStatus.SUCCESS] * len(slots)  # type: ignore[index]
        assert [verdict.findings.kept async for verdict in app.queue.audit.verdicts()] == [[]]


async def test_a_run_by_hand_gets_its_slot_too_in_a_thread_and_with_overlap(app: Duly) -> None:
    @app.job(schedule=DAILY, overlap="allow")
    def report(slot: Slot) -> list[str]:
        return [slot.schedule_id, str(slot), slot.key]

    async with app.running():
        run = await app.trigger(report, key="mine")
        assert (await app.trigger("report", key="mine")).id == run.id

        schedule_id, at, key = await app.result(run)
        assert (schedule_id, key) == ("report", f"manual:mine:report:{at}")
        assert datetime.fromisoformat(at).timestamp() * 1e6 == run.scheduled_for


def _program(url: str, declare: Callable[[Duly], Any], *, name: str = "app", owner: str = "local") -> Duly:
    app = Duly(settings=Settings(database_url=url), name=name, owner=owner)
    declare(app)
    return app


def _job(name: str, **options: Any) -> Callable[[Duly], Any]:
    def work() -> None: ...

    return lambda app: app.job(name=name, **options)(work)


async def _reconciled(app: Duly) -> tuple[list[str], list[str], list[str], list[str]]:
    async with app:
        told = app.reconciled
        assert told is not None
        return list(told.created), list(told.updated), list(told.unchanged), list(told.retired)


async def test_what_a_program_declares_is_created_updated_left_and_retired(database_url: str) -> None:
    def both(cadence: Any) -> Callable[[Duly], Any]:
        return lambda app: [_job("a", schedule=HOURLY)(app), _job("b", schedule=cadence)(app)]

    assert await _reconciled(_program(database_url, both(HOURLY))) == (["a", "b"], [], [], [])
    assert await _reconciled(_program(database_url, both(HOURLY))) == ([], [], ["a", "b"], [])
    assert await _reconciled(_program(database_url, both(DAILY))) == ([], ["b"], ["a"], [])
    assert await _reconciled(_program(database_url, _job("b", schedule=DAILY))) == ([], [], ["b"], ["a"])
    app = _program(database_url, _job("b"))
    assert await _reconciled(app) == ([], [], [], ["b"])
    async with app:
        assert await app.schedules() == []


async def test_what_is_paused_stays_paused_when_the_program_starts_again(database_url: str) -> None:
    async with _program(database_url, _job("a", schedule=HOURLY)) as app:
        await app.pause("a")
    async with _program(database_url, _job("a", schedule=DAILY)) as app:
        (schedule,) = await app.schedules()
        assert (schedule.state, schedule.cadence) == (ScheduleState.PAUSED, DAILY)
        assert (await app.resume("a")).state is ScheduleState.ACTIVE


async def test_a_program_whose_schedule_is_somebody_elses_does_not_start_and_changes_nothing_of_it(
    database_url: str,
) -> None:
    async with Duly(settings=Settings(database_url=database_url)) as app:
        await app.queue.schedules.create(owner="local", schedule_id="a", cadence=DAILY, target=Target(kind="by-hand"))
    app = _program(database_url, _job("a", schedule=HOURLY))

    with pytest.raises(ScheduleTaken, match="'a': it was made by hand") as taken:
        await app.open()

    assert [schedule_id for schedule_id, _ in taken.value.conflicts] == ["a"]
    with pytest.raises(ScheduleTaken):
        await app.open()
    async with Duly(settings=Settings(database_url=database_url)) as app:
        (schedule,) = await app.schedules()
        assert schedule.target.kind == "by-hand"


async def test_a_single_instant_that_is_over_holds_no_program_up(database_url: str) -> None:
    past = once(datetime(2020, 1, 1, tzinfo=UTC))

    async with _program(database_url, _job("a", schedule=past)) as app:
        assert await app.schedules() == []


async def test_a_pool_has_the_declared_limit_and_stays_paused(database_url: str) -> None:
    def declare(limit: int) -> Callable[[Duly], Any]:
        return lambda app: app.pool("gpu", limit=limit)

    async with _program(database_url, declare(2)) as app:
        (pool,) = [pool for pool in await app.queue.pools.all() if pool.name == "gpu"]
        assert pool == Pool(name=pool.name, slots=2)
        await app.queue.pools.pause(pool.name)
    async with _program(database_url, declare(3)) as app:
        paused = await app.queue.pools.get(pool.name)
        assert (paused.slots, paused.mode) == (3, PoolMode.PAUSED)
        assert await app.worker_pools(app.queue) == {"gpu": 3}


async def test_a_job_in_a_pool_that_nobody_defined_is_refused_at_the_start(database_url: str) -> None:
    app = _program(database_url, _job("a", pool="nowhere"))

    with pytest.raises(UnknownPool, match="nowhere"):
        await app.run()
    with pytest.raises(UnknownPool, match="nowhere"):
        await _program(database_url, _job("a", pool="nowhere", schedule=cron("@daily"))).open()


async def test_time_can_be_kept_in_one_program_and_work_be_done_in_another(database_url: str) -> None:
    done = asyncio.Event()

    def declare(app: Duly) -> None:
        @app.job(schedule=every("1s"))
        async def tick() -> None:
            done.set()

    keeper, worker = _program(database_url, declare), _program(database_url, declare)
    keeping, working = asyncio.create_task(keeper.keep_time()), asyncio.create_task(worker.work())
    await done.wait()
    keeper.stop()
    worker.stop()
    await asyncio.gather(keeping, working)


async def test_many_processes_of_one_program_may_start_at_once(database_url: str) -> None:
    def declare(app: Duly) -> None:
        for number in range(5):
            _job(f"job-{number}", schedule=HOURLY)(app)

    apps = [_program(database_url, declare) for _ in range(4)]
    try:
        await asyncio.gather(*(app.open() for app in apps))

        made = [schedule_id for app in apps if app.reconciled for schedule_id in app.reconciled.created]
        assert sorted(made) == [f"job-{number}" for number in range(5)]
    finally:
        await asyncio.gather(*(app.close() for app in apps))
