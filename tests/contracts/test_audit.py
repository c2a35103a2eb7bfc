"""The audit on a real store: clean on a sound ledger, and exact about what is broken past every guard."""

import pytest

from duly.application import audit
from duly.application.audit import Audit
from duly.cli.audit import audit as show
from duly.domain.audit import Law
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import ScheduleState
from duly.ports.storage import Transaction
from tests.contracts.keeping import Keeping
from tests.contracts.ledgers import Past, audited, forget, found, minute, names, unguarded
from tests.contracts.world import World

AT = "2027-01-15T08:0"


async def ten_minutes(world: World, name: str = "s") -> Past:
    """Slots 1 to 3 ran, 4 was skipped, 5 to 7 were missed, 8 and 9 ran."""
    past = await Past.begin(world, name)
    await past.alive(0, 4.5)
    await past.open(1, 2, 3)
    await past.skip(4)
    await past.miss(5, 7)
    await past.alive(7.5, 10)
    await past.open(8, 9)
    await past.run_all()
    world.clock.advance(9.5 * 60)
    return past


@pytest.mark.req("OWN-01")
@pytest.mark.req("RISK-04")
async def test_a_sound_ledger_is_clean_and_every_slot_is_counted(world: World) -> None:
    await ten_minutes(world)

    (verdict,) = await audited(world)

    assert verdict.findings.kept == []
    assert str(verdict.equation) == "9 due = 5 ran + 1 skipped (overlap) + 3 missed (outage)"


@pytest.mark.req("OWN-01")
async def test_the_audit_changes_nothing(world: World) -> None:
    await ten_minutes(world)
    tables = [
        "schedules",
        "schedule_revisions",
        "schedule_runs",
        "schedule_gaps",
        "schedule_arrears",
        "coverage",
        "jobs",
    ]
    before = [await world.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]

    await audited(world)

    assert [await world.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables] == before


# Each thing broken, and the audit says exactly that.


UNACCOUNTED = "opened, but has neither row nor gap, and is not owed"
GAP = f"{AT}5:00Z through {AT}7:00Z"
MISSED = "recorded as missed (outage), but"
WITHOUT = Law.MISSED_WITHOUT_OUTAGE
ALIVE = "a timekeeper was alive when"
SET_SLOT = "UPDATE schedule_runs SET scheduled_for = "


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.parametrize(
    ("broken", "findings"),
    [
        ("DELETE FROM schedule_runs WHERE id = 'run_s_002'", [f"lost: {AT}2:00Z: {UNACCOUNTED}"]),
        ("DELETE FROM schedule_gaps", [f"lost: {GAP}, 3 slots: {UNACCOUNTED}"]),
        (
            "UPDATE schedule_runs SET kind = 'manual', own_key = 'by hand' WHERE id = 'run_s_004'",
            [f"lost: {AT}4:00Z: {UNACCOUNTED}"],
        ),
        (
            f"UPDATE schedules SET opened_through = {minute(11)}",
            [f"lost: 2027-01-15T08:10:00Z through 2027-01-15T08:11:00Z, 2 slots: {UNACCOUNTED}"],
        ),
        (
            f"UPDATE schedules SET opened_through = {minute(8)}",
            [f"backwards: {AT}9:00Z: recorded, though slots are open through {AT}8:00Z only"],
        ),
        (
            "UPDATE schedule_gaps SET slots = 4",
            [f"unplanned: {GAP}, 4 slots: {MISSED} the cadence has 3 slots there: Every 1 minute"],
        ),
        (
            f"UPDATE schedule_gaps SET last_slot = {minute(6)}, slots = 2",
            [f"lost: {AT}7:00Z: {UNACCOUNTED}"],
        ),
        (
            f"UPDATE schedule_gaps SET last_slot = {minute(8)}, slots = 4",
            [
                f"{WITHOUT}: {AT}5:00Z through {AT}8:00Z, 4 slots: {MISSED} {ALIVE} {AT}8:00Z fired",
                f"doubled: {AT}8:00Z: run_s_008 has a slot that is also recorded as missed or owed",
            ],
        ),
        (
            f"UPDATE coverage SET alive_at = {minute(6)} WHERE alive_at < {minute(6)}",
            [f"{WITHOUT}: {GAP}, 3 slots: {MISSED} {ALIVE} {AT}5:00Z fired"],
        ),
        (
            f"{SET_SLOT} {minute(9.5)} WHERE id = 'run_s_009'",
            [
                f"unplanned: {AT}9:30Z: run_s_009 is no slot of revision 1: Every 1 minute",
                f"lost: {AT}9:00Z: {UNACCOUNTED}",
            ],
        ),
        (
            "UPDATE schedule_runs SET revision = 2 WHERE id = 'run_s_009'",
            [f"unplanned: {AT}9:00Z: run_s_009 names revision 2, but 1 was in force"],
        ),
        (
            "UPDATE schedules SET revision = 2",
            ["backwards: is at revision 2, but has not all up to it, in order"],
        ),
        (
            "UPDATE schedules SET state = 'paused', next_run_at = NULL, fire_at = NULL",
            ["backwards: is paused, but its last revision says active"],
        ),
        (
            "UPDATE schedule_runs SET reason = NULL WHERE status = 'skipped'",
            [f"backwards: {AT}4:00Z: run_s_004 is skipped, but for no reason"],
        ),
        (
            "UPDATE schedule_runs SET status = 'running', completed_at = NULL WHERE id = 'run_s_002'",
            [f"stuck: {AT}2:00Z: run_s_002 is running, but none of its jobs is live"],
        ),
    ],
)
async def test_what_is_broken_is_named(world: World, broken: str, findings: list[str]) -> None:
    await ten_minutes(world)

    await world.rows(broken)

    assert await found(world) == findings
    await forget(world)


@pytest.mark.req("OWN-01", error=True)
async def test_a_second_row_for_a_slot_is_doubled(world: World) -> None:
    await ten_minutes(world)
    columns = (
        "schedule_id, owner_user_id, revision, kind, own_key, scheduled_for, fire_at, opened_at, status, job_id,"
        " attempt_count, started_at, completed_at"
    )

    async with unguarded(
        world, "schedule_runs_one_per_slot", clean_up="DELETE FROM schedule_runs WHERE id = 'run_s_twin'"
    ):
        await world.rows(
            f"INSERT INTO schedule_runs (id, {columns}) SELECT 'run_s_twin', {columns} FROM schedule_runs "
            "WHERE id = 'run_s_002'"
        )

        assert await found(world) == [f"doubled: {AT}2:00Z: run_s_twin is a second row for this slot"]


_JOB = (
    "kind, payload, pool, priority, run_at, created_at, max_attempts, session, token, started_at, finished_at, status,"
    " ledger_run"
)


@pytest.mark.req("OWN-01", error=True)
async def test_a_job_of_another_chain_that_completed_for_the_same_run_is_doubled(world: World) -> None:
    await ten_minutes(world)

    await world.rows(
        f"INSERT INTO finished_jobs (id, chain, attempt, {_JOB}) SELECT 'job_twin', 'job_twin', 1, {_JOB} "
        "FROM finished_jobs WHERE id = 'job_s_002'"
    )

    assert await found(world) == [
        f"doubled: {AT}2:00Z: job job_twin completed for run_s_002, whose own is job job_s_002"
    ]


@pytest.mark.req("OWN-01", error=True)
async def test_two_completed_jobs_of_one_chain_are_doubled(world: World) -> None:
    await ten_minutes(world)

    await world.rows(
        f"INSERT INTO finished_jobs (id, chain, retry_of, attempt, {_JOB}) "
        f"SELECT 'job_twin', id, id, 1, {_JOB} FROM finished_jobs WHERE id = 'job_s_002'"
    )

    assert await found(world) == [f"doubled: {AT}2:00Z: run_s_002 has 2 jobs that completed, in one chain of retries"]


@pytest.mark.req("OWN-01", error=True)
async def test_a_run_whose_job_vanished_is_stuck(world: World) -> None:
    past = await Past.begin(world)
    await past.open(1)
    await world.rows("DELETE FROM jobs")

    assert await found(world) == [f"stuck: {AT}1:00Z: run_s_001 is pending, but none of its jobs is live"]
    await forget(world)


@pytest.mark.req("OWN-01", error=True)
async def test_a_run_that_ended_while_its_job_lives_on_is_backwards(world: World) -> None:
    past = await Past.begin(world)
    await past.open(1)
    await world.rows(f"UPDATE schedule_runs SET status = 'success', completed_at = {minute(2)}")

    assert await found(world) == [f"backwards: {AT}1:00Z: run_s_001 is success, but its job job_s_001 is live"]
    await forget(world)


@pytest.mark.req("OWN-01", error=True)
async def test_a_run_in_a_session_that_fell_silent_is_stuck(world: World) -> None:
    past = await Past.begin(world)
    await past.alive(0, 1)
    await past.open(1)
    hand = await world.hand()
    await hand.claim()
    assert await found(world) == []

    await past.alive(1.5, 2.5)
    world.clock.advance(2.6 * 60)

    (stuck,) = await found(world)
    assert stuck.startswith(
        f"stuck: {AT}1:00Z: run_s_001 is running in session {hand.session}, which was last seen at "
    )


@pytest.mark.req("OWN-01")
async def test_a_run_and_its_retries_are_one_run(world: World) -> None:
    past = await Past.begin(world, retry=RetryPolicy(max_attempts=2))
    await past.open(1)
    hand = await world.hand()
    await hand.fail(*await hand.claim())

    (between,) = await audited(world)
    world.clock.advance(10)
    await world.queue.jobs.stage()
    await hand.work_off()
    (after,) = await audited(world)

    assert between.findings.kept == after.findings.kept == []
    assert (str(between.equation), str(after.equation)) == ("1 due = 1 running", "1 due = 1 ran")


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.req("RISK-04", error=True)
async def test_a_slot_that_is_not_opened_while_somebody_keeps_time_is_lost(world: World) -> None:
    past = await Past.begin(world)
    await past.alive(0, 3.5)
    await past.open(1)
    world.clock.advance(3.6 * 60)

    (verdict,) = await audited(world)

    assert str(verdict.equation) == "3 due = 1 pending + 1 not opened yet + 1 lost"
    assert [(finding.law, finding.first) for finding in verdict.findings.kept] == [(Law.LOST, minute(2) // 1_000_000)]


async def test_owed_slots_are_accounted_for(world: World) -> None:
    past = await Past.begin(world, overlap="queue", catch_up="spread")
    await past.alive(0, 0.5)
    await past.miss(1, 4, owed=True)
    await past.alive(4.5, 5)
    await past.open(5)
    world.clock.advance(5.2 * 60)

    (verdict,) = await audited(world)

    assert verdict.findings.kept == []
    assert str(verdict.equation) == "5 due = 1 pending + 4 owed"


@pytest.mark.req("OWN-01")
async def test_the_deleted_are_audited_too(world: World) -> None:
    past = await Past.begin(world)
    await past.open(1)

    async def delete(tx: Transaction) -> None:
        schedule = await tx.schedules.get(past.schedule.id)
        assert schedule is not None
        await tx.schedules.revise(schedule.changed(at=minute(1.5), state=ScheduleState.DELETED))

    await world.queue.storage.transact(delete)
    world.clock.advance(600)

    (verdict,) = await audited(world)
    assert str(verdict.equation) == "1 due = 1 pending"
    await forget(world)
    assert len(await found(world)) == 1


@pytest.mark.req("OWN-01")
@pytest.mark.parametrize("catch_up", ["none", "fire_immediately"])
async def test_a_clock_that_is_set_forward_and_back_loses_nothing(world: World, catch_up: str) -> None:
    """What the wrong clock made look missed is recorded as such, and stays so when the clock is right again."""
    keeping = Keeping(world)
    await keeping.schedule(overlap="skip", catch_up=catch_up)
    await keeping.at(2)
    world.clock.step(3_600)
    await keeping.tick()
    world.clock.step(-3_600)
    for minutes in (3, 4, 30, 70):
        await keeping.at(minutes)

    (verdict,) = await audited(world)

    assert verdict.findings.kept == []
    assert verdict.equation.due == 70
    assert verdict.equation.missed.total() > 50


@pytest.mark.req("OWN-01")
async def test_what_was_not_planned_and_what_was_run_by_hand_stand_behind_the_equation(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule(overlap="queue")
    await keeping.at(2)
    await keeping.schedules.pause("s", owner=None)
    await keeping.at(5)
    await keeping.schedules.resume("s", owner=None)
    await keeping.schedules.run_now("s", owner=None)
    await keeping.at(6)
    said: list[str] = []

    holds = await show(Audit(storage=world.queue.storage), said.append, schedule=None, since=None, as_json=False)

    counted = "3 due = 3 pending; 3 not planned (paused); 1 manual"
    assert holds
    assert said == [f"s                        {counted}", f"1 schedule               {counted}", "the laws hold"]


@pytest.mark.req("OWN-01", error=True)
async def test_of_many_findings_a_hundred_are_shown_and_the_rest_counted(world: World) -> None:
    past = await Past.begin(world)
    await past.open(*range(2, 300, 2))
    said: list[str] = []

    holds = await show(Audit(storage=world.queue.storage), said.append, schedule="s", since=None, as_json=False)

    assert not holds
    assert len(said) == 104
    assert said[-3:] == [
        "  and more: 49 lost",
        "1 schedule               298 due = 149 pending + 149 lost",
        "the laws are broken: 149 lost",
    ]


# Windows


@pytest.mark.parametrize(("schedules", "window"), [(1, 1), (2, 2), (3, 5)])
async def test_a_ledger_of_any_size_is_judged_in_small_windows(
    world: World, monkeypatch: pytest.MonkeyPatch, schedules: int, window: int
) -> None:
    monkeypatch.setattr(audit, "SCHEDULES_AT_ONCE", schedules)
    monkeypatch.setattr(audit, "WINDOW", window)
    monkeypatch.setattr(audit, "JOBS_AT_ONCE", window)
    await ten_minutes(world, "a")
    for name in ("b", "c", "d", "e"):
        past = await Past.begin(world, name)
        await past.open(1, 2, 3, 4)
        await past.miss(5, 7)
        await past.open(8, 9)
        await past.run_all()

    verdicts = await audited(world)

    assert names(verdicts) == ["a", "b", "c", "d", "e"]
    assert [verdict.findings.kept for verdict in verdicts] == [[]] * 5
    assert [verdict.equation.due for verdict in verdicts] == [9] * 5


async def test_a_doubled_row_at_the_border_of_a_window_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "WINDOW", 1)
    await test_a_second_row_for_a_slot_is_doubled(world)


async def test_one_schedule_can_be_audited_alone_and_since_an_instant(world: World) -> None:
    await (await Past.begin(world, "a")).open(1)
    await ten_minutes(world, "b")

    (verdict,) = await audited(world, "b", since=minute(5))

    assert verdict.schedule.id == "b"
    assert str(verdict.equation) == "4 due = 2 ran + 2 missed (outage)"
