"""The ledger: one row for each slot, gaps where there is none, arrears, coverage and revocations."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from duly.domain.coverage import OUTAGE_AFTER, Span, outages_between
from duly.domain.ids import JobId, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.runs import Arrears, Gap, GapReason, Reason, Run, RunKind, RunStatus
from duly.ports.storage import Storage, Transaction
from tests.contracts.clocks import MORNING
from tests.contracts.plans import planned, revised, row_of, run
from tests.contracts.points import met, stop_after
from tests.contracts.world import World

HOURLY = ScheduleId("hourly")
HOUR = 3_600 * SECOND


def _at(hours: float) -> Instant:
    return Instant(MORNING + int(hours * HOUR))


@pytest.mark.req("GRAPH-19")
async def test_a_row_comes_back_as_it_was(world: World) -> None:
    await planned(world)
    row = run(
        "run",
        status=RunStatus.CANCELLED,
        reason=Reason.REPLACED,
        detail="a later slot took its place",
        job_id=JobId("job"),
        run_id="exec",
        trace_id="trace",
        attempt_count=2,
        started_at=_at(1),
        completed_at=_at(2),
        error_message="too late",
    )

    assert await world.transact(lambda tx: tx.ledger.add([row])) == {"run"}

    assert await row_of(world) == row
    assert await world.transact(lambda tx: tx.ledger.slot(HOURLY, MORNING)) == row
    assert await world.transact(lambda tx: tx.ledger.slot(HOURLY, _at(1))) is None


@pytest.mark.req("GRAPH-19", error=True)
async def test_a_slot_has_one_row_even_if_two_add_it_at_once(world: World) -> None:
    await planned(world)
    storages = [world.queue.storage, (await world.another()).storage]
    slots = [_at(n) for n in range(20)]

    async def add(n: int) -> set[str]:
        rows = [run(f"{n} {slot}", slot) for slot in (slots if n else reversed(slots))]
        return {str(run_id) for run_id in await storages[n].transact(lambda tx: tx.ledger.add(rows))}

    first, second = await asyncio.gather(add(0), add(1))

    rows = await world.transact(lambda tx: tx.ledger.of_schedule(HOURLY, before=None, most=100))
    assert len(first) + len(second) == len(rows) == 20
    assert {row.id for row in rows} == first | second
    assert [row.scheduled_for for row in rows] == slots[::-1]


@pytest.mark.req("GRAPH-15")
async def test_runs_by_hand_and_backfills_stand_beside_a_slot_each_once_by_its_key(world: World) -> None:
    await planned(world)
    slot = run("slot")
    by_hand = run("by hand", kind=RunKind.MANUAL, own_key="press")
    filled = [run(f"fill {n}", _at(n), kind=RunKind.BACKFILL, own_key="fill") for n in range(2)]

    added = await world.transact(lambda tx: tx.ledger.add([slot, by_hand, *filled]))
    again = await world.transact(
        lambda tx: tx.ledger.add(
            [
                filled[1]._replace(id=by_hand.id),
                filled[0]._replace(id=slot.id),
                run("twice", _at(5), kind=RunKind.MANUAL, own_key="press"),
                run("refilled", kind=RunKind.BACKFILL, own_key="fill"),
                run("other", _at(1), kind=RunKind.BACKFILL, own_key="press"),
            ]
        )
    )

    assert len(added) == 4
    assert again == {"other"}
    assert [row.id for row in await world.transact(lambda tx: tx.ledger.by_key(HOURLY, "fill"))] == ["fill 0", "fill 1"]
    assert await world.transact(lambda tx: tx.ledger.by_key(HOURLY, "")) == []


@pytest.mark.req("GRAPH-12")
async def test_runs_are_listed_the_newest_first_between_two_slots(world: World) -> None:
    await planned(world)
    await planned(world, "other")
    rows = [run(f"run {n}", _at(n)) for n in range(5)]
    elsewhere = run("elsewhere", schedule_id="other")
    await world.transact(lambda tx: tx.ledger.add([*rows, elsewhere]))

    async def listed(tx: Transaction) -> list[list[str]]:
        pages = [
            await tx.ledger.of_schedule(HOURLY, before=None, most=2),
            await tx.ledger.of_schedule(HOURLY, before=_at(3), most=10, since=_at(1)),
        ]
        return [[row.id for row in page] for page in pages]

    assert await world.transact(listed) == [["run 4", "run 3"], ["run 2", "run 1"]]


@pytest.mark.req("CRON-03")
async def test_what_has_not_ended_is_in_flight_the_oldest_slot_first(world: World) -> None:
    for name in ("hourly", "other", "idle"):
        await planned(world, name)
    done: dict[str, Any] = {"status": RunStatus.SUCCESS, "completed_at": MORNING}
    rows = [
        run("z", _at(1), status=RunStatus.RUNNING, started_at=MORNING),
        run("y", _at(3)),
        run("x", _at(2)),
        run("w", _at(0), **done),
        run("v", schedule_id="other"),
        run("u", schedule_id="idle", **done),
    ]
    await world.transact(lambda tx: tx.ledger.add(rows))

    found = await world.transact(lambda tx: tx.ledger.in_flight([HOURLY, ScheduleId("idle")]))

    assert set(found) == {HOURLY}
    assert (found[HOURLY].running, found[HOURLY].waiting) == (["z"], ["x", "y"])


async def _close(world: World, row: Run) -> None:
    await world.transact(lambda tx: tx.ledger.close([row]))


@pytest.mark.req("GRAPH-19")
async def test_a_row_is_closed_with_its_reason(world: World) -> None:
    await planned(world)
    row = run("run")
    await world.transact(lambda tx: tx.ledger.add([row, run("other", _at(1))]))
    closed = row._replace(
        status=RunStatus.SKIPPED, reason=Reason.OVERLAP, detail="x was in flight", completed_at=_at(1)
    )

    await _close(world, closed)

    assert await row_of(world) == closed
    assert (await row_of(world, "other")).status is RunStatus.PENDING


@pytest.mark.req("GRAPH-19", error=True)
@pytest.mark.parametrize("status", [status for status in RunStatus if status.is_terminal])
async def test_a_row_that_has_ended_never_changes(world: World, status: RunStatus) -> None:
    await planned(world)
    ended = run("run", status=status, completed_at=MORNING)
    await world.transact(lambda tx: tx.ledger.add([ended]))

    for later in RunStatus:
        if later.is_terminal:
            change = ended._replace(status=later, detail="changed", completed_at=_at(1))
            await _close(world, change)

    assert await row_of(world) == ended


def _gap(first: float, last: float, *, count: int = 1, reason: GapReason = GapReason.OUTAGE, revision: int = 1) -> Gap:
    return Gap(
        schedule_id=HOURLY,
        reason=reason,
        first=_at(first),
        last=_at(last),
        count=count,
        recorded_at=_at(last),
        revision=revision,
    )


async def _add_gaps(world: World, *gaps: Gap) -> None:
    await world.transact(lambda tx: tx.ledger.add_gaps(gaps))


async def _gaps(world: World, schedule_id: ScheduleId = HOURLY, *, since: Instant | None = None) -> list[Gap]:
    return await world.transact(lambda tx: tx.ledger.gaps(schedule_id, since=since))


@pytest.mark.req("GRAPH-10")
async def test_a_gap_that_continues_the_last_one_extends_it(world: World) -> None:
    await planned(world)

    for gap in (_gap(0, 2, count=3), _gap(3, 3), _gap(4, 6, count=3)):
        await _add_gaps(world, gap)

    assert await _gaps(world) == [_gap(0, 6, count=7)]


@pytest.mark.req("GRAPH-10", error=True)
@pytest.mark.parametrize(
    "second", [_gap(4, 5, count=2), _gap(3, 3, reason=GapReason.SUPERSEDED), _gap(3, 3, revision=2)]
)
async def test_a_gap_after_a_slot_or_for_another_reason_or_plan_is_its_own(world: World, second: Gap) -> None:
    first = _gap(0, 2, count=3)
    made = await planned(world)
    await revised(world, made.changed(at=_at(2)))
    await _add_gaps(world, first)

    await _add_gaps(world, second)

    assert await _gaps(world) == [first, second]
    assert await _gaps(world, since=_at(3)) == [second]


@pytest.mark.req("GRAPH-10")
async def test_gaps_of_many_schedules_are_kept_apart(world: World) -> None:
    names = [ScheduleId(f"s{n}") for n in range(30)]
    for name in names:
        await planned(world, name)
    gaps = [replace(_gap(0, 1, count=2), schedule_id=name) for name in names]
    await _add_gaps(world, *gaps)

    await _add_gaps(world, *[replace(_gap(2, 2), schedule_id=name) for name in names])

    for name in names:
        (found,) = await _gaps(world, name)
        assert (found.first, found.last, found.count) == (_at(0), _at(2), 3)


def _arrears(schedule_id: str = "hourly", *, first: float = 0, due: float = 0, count: int = 3) -> Arrears:
    return Arrears(
        schedule_id=ScheduleId(schedule_id),
        revision=1,
        first=_at(first),
        next=_at(first),
        last=_at(first + 2),
        count=count,
        due_at=_at(due),
        every=Micros(5 * SECOND),
    )


@pytest.mark.req("CRON-04")
async def test_arrears_move_their_cursor_until_none_are_owed(world: World) -> None:
    await planned(world)
    owed = _arrears()
    moved = replace(owed, next=_at(1), count=2, due_at=_at(4))
    await world.transact(lambda tx: tx.ledger.owe([owed]))
    assert await world.transact(lambda tx: tx.ledger.arrears_due(MORNING, 10)) == [owed]

    await world.transact(lambda tx: tx.ledger.owe([moved]))

    assert await world.transact(lambda tx: tx.ledger.arrears_due(MORNING, 10)) == []
    assert await world.transact(lambda tx: tx.ledger.arrears(HOURLY)) == [moved]
    assert (await world.transact(lambda tx: tx.ledger.agenda())).arrears_at == _at(4)

    await world.transact(lambda tx: tx.ledger.owe([replace(moved, next=_at(3), count=0)]))

    assert await world.transact(lambda tx: tx.ledger.arrears(HOURLY)) == []
    assert (await world.transact(lambda tx: tx.ledger.agenda())).arrears_at is None


@pytest.mark.req("CRON-04")
async def test_two_outages_of_one_schedule_are_owed_apart_and_the_later_one_waits_for_the_earlier(world: World) -> None:
    await planned(world)
    await planned(world, "other")
    owed = [_arrears(due=3), _arrears(first=10, due=1), _arrears("other", due=2)]
    await world.transact(lambda tx: tx.ledger.owe(owed))

    assert (await world.transact(lambda tx: tx.ledger.agenda())).arrears_at == _at(2)
    assert await world.transact(lambda tx: tx.ledger.arrears_due(_at(3), 2)) == [owed[2], owed[0]]

    await world.transact(lambda tx: tx.ledger.owe([replace(owed[0], count=0)]))
    assert (await world.transact(lambda tx: tx.ledger.agenda())).arrears_at == _at(1)
    assert await world.transact(lambda tx: tx.ledger.arrears_due(_at(3), 2)) == [owed[1], owed[2]]
    assert await world.transact(lambda tx: tx.ledger.arrears(HOURLY)) == [owed[1]]


@pytest.mark.req("CRON-11")
@pytest.mark.store("postgres")
@pytest.mark.parametrize("held", ["due_arrears", "schedule_by_id_locked"])
async def test_arrears_whose_row_or_schedule_is_held_are_passed_over(postgres_world: World, held: str) -> None:
    world = postgres_world
    await planned(world)
    await world.transact(lambda tx: tx.ledger.owe([_arrears()]))

    async def hold(tx: Transaction) -> None:
        if held == "due_arrears":
            await tx.ledger.arrears_due(MORNING, 1)
        else:
            await tx.schedules.lock(HOURLY)

    with stop_after(held) as point:
        holding = asyncio.create_task(world.transact(hold))
        await point.reached.wait()
        assert await world.transact(lambda tx: tx.ledger.arrears_due(MORNING, 1)) == []
        point.go.set()
        await holding

    assert await world.transact(lambda tx: tx.ledger.arrears_due(MORNING, 1)) == [_arrears()]


def _alive(seconds: int) -> Instant:
    return Instant(MORNING + seconds * SECOND)


async def _beat(world: World, seconds: int, *, storage: Storage | None = None) -> Span:
    storage = storage or world.queue.storage
    return await storage.transact(lambda tx: tx.ledger.keep_alive(_alive(seconds), outage_after=OUTAGE_AFTER))


@pytest.mark.req("OWN-06")
async def test_heartbeats_extend_one_span_until_a_silence_was_an_outage(world: World) -> None:
    for seconds in (0, 5, 65):
        assert await _beat(world, seconds) == Span(_alive(0), _alive(seconds))

    assert await _beat(world, 126) == Span(_alive(126), _alive(126))

    spans = await world.transact(lambda tx: tx.ledger.coverage(MORNING))
    assert spans == [Span(_alive(0), _alive(65)), Span(_alive(126), _alive(126))]


@pytest.mark.req("OWN-06")
async def test_a_clock_that_is_set_back_takes_no_coverage_away(world: World) -> None:
    await _beat(world, 50)

    assert await _beat(world, 0) == Span(_alive(0), _alive(50))
    await _beat(world, 5)
    await _beat(world, 60)

    spans = await world.transact(lambda tx: tx.ledger.coverage(MORNING))
    assert spans == [Span(_alive(0), _alive(50)), Span(_alive(50), _alive(60))]


@pytest.mark.req("OWN-06")
async def test_coverage_begins_with_the_span_before_an_instant(world: World) -> None:
    spans = [await _beat(world, seconds) for seconds in (0, 100, 200, 300)]

    async def since(tx: Transaction) -> list[list[Span]]:
        return [await tx.ledger.coverage(_alive(seconds)) for seconds in (-9, 0, 150, 200, 201, 999)]

    assert await world.transact(since) == [spans, spans, spans[1:], spans[1:], spans[2:], spans[3:]]


@pytest.mark.req("OWN-06", error=True)
@pytest.mark.parametrize("first", [True, False])
async def test_two_who_find_an_outage_at_once_leave_one_silence(world: World, first: bool) -> None:
    if not first:
        await _beat(world, 0)
    storages = [world.queue.storage, (await world.another()).storage]

    await asyncio.gather(*(_beat(world, 500 + n, storage=storages[n % 2]) for n in range(6)))

    spans = await world.transact(lambda tx: tx.ledger.coverage(_alive(400)))
    assert len(outages_between(spans, outage_after=Micros(0))) == (0 if first else 1)


@pytest.mark.req("OWN-06", error=True)
@pytest.mark.store("postgres")
async def test_a_heartbeat_waits_for_one_that_is_about_to_begin_a_span(postgres_world: World) -> None:
    world = postgres_world
    with stop_after("last_span") as point:
        first = asyncio.create_task(_beat(world, 0))
        await point.reached.wait()
        second = asyncio.create_task(_beat(world, 1))
        await met(second)
        assert not second.done()
        point.go.set()

    assert await first == Span(_alive(0), _alive(0))
    assert await second == Span(_alive(0), _alive(1))


@pytest.mark.req("GRAPH-14")
async def test_revocations_are_taken_out_once_when_they_are_due(world: World) -> None:
    async def ask(tx: Transaction) -> None:
        for name, hours in (("b", 2), ("a", 1), ("c", 9), ("a", 20)):
            await tx.ledger.revoke_later(JobId(name), at=_at(hours), reason=f"asked at {hours}")

    await world.transact(ask)
    assert (await world.transact(lambda tx: tx.ledger.agenda())).revoke_at == _at(1)

    due = await world.transact(lambda tx: tx.ledger.revocations_due(_at(3), 10))

    assert due == [("a", "asked at 1"), ("b", "asked at 2")]
    assert await world.transact(lambda tx: tx.ledger.revocations_due(_at(3), 10)) == []
    assert (await world.transact(lambda tx: tx.ledger.agenda())).revoke_at == _at(9)
