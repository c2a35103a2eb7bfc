"""The audit's judgement on hand-made histories: sound ones, and each law broken once."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from duly import cron, every, once
from duly.domain.audit import AuditedRun, Judgement, Law, LiveJob, Missing, Timekeeping, Verdict
from duly.domain.cadence import TZ_VERSION, Cadence, UnreadableCron
from duly.domain.coverage import Span
from duly.domain.ids import JobId, Owner, RunId, ScheduleId, SessionId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.policies import Policies
from duly.domain.runs import GapReason, Reason, Run, RunKind, RunStatus
from duly.domain.schedules import Revision, Schedule, ScheduleState, Target, new_schedule

Entry = AuditedRun | Missing

OUTAGE = GapReason.OUTAGE
BORN = 1_800_000_000
ALIVE = Span(Instant(BORN * SECOND), Instant((BORN + 600) * SECOND))


def at(minutes: float) -> Instant:
    return Instant(int((BORN + minutes * 60) * SECOND))


def minutely(cadence: Cadence | None = None, **policies: Any) -> Schedule:
    return new_schedule(
        schedule_id="s",
        owner="me",
        cadence=cadence or every("1m"),
        target=Target(kind="work"),
        policies=Policies(**policies),
        now=at(0),
    )


def row(minute: float, status: RunStatus = RunStatus.SUCCESS, **rest: Any) -> AuditedRun:
    jobs = {name: rest.pop(name) for name in ("live", "completed") if name in rest}
    defaults: dict[str, Any] = {
        "id": RunId(f"run {minute:g}"),
        "schedule_id": ScheduleId("s"),
        "owner": Owner("me"),
        "revision": 1,
        "scheduled_for": at(minute),
        "fire_at": at(minute),
        "opened_at": at(minute),
        "status": status,
        "completed_at": at(minute + 0.5) if status.is_terminal else None,
    }
    if not status.is_terminal:
        jobs.setdefault("live", LiveJob(id=JobId(f"job {minute:g}")))
    return AuditedRun(run=Run(**defaults | rest), **jobs)


def rows(*minutes: float) -> list[AuditedRun]:
    return [row(minute) for minute in minutes]


def gap(first: float, last: float, slots: int, reason: GapReason | None = OUTAGE, *, revision: int = 1) -> Missing:
    return Missing(first=at(first) // SECOND, last=at(last) // SECOND, slots=slots, revision=revision, reason=reason)


@dataclass(kw_only=True)
class History:
    """What the store holds, to be judged at minute 10 unless told otherwise."""

    schedule: Schedule = field(default_factory=minutely)
    entries: Iterable[Entry] = ()
    opened: float
    revisions: list[Revision] | None = None
    coverage: tuple[Span, ...] = (ALIVE,)
    now: float = 10
    since: float | None = None
    tz_version: str = TZ_VERSION

    def judged(self) -> Verdict:
        schedule = replace(self.schedule, opened_through=at(self.opened) // SECOND)
        judgement = Judgement(
            schedule,
            [self.schedule.recorded()] if self.revisions is None else self.revisions,
            timekeeping=Timekeeping.from_spans(self.coverage, now=at(self.now)),
            now=at(self.now),
            since=None if self.since is None else at(self.since) // SECOND,
            tz_version=self.tz_version,
        )
        for entry in sorted(self.entries, key=_place):
            judgement.missing(entry) if isinstance(entry, Missing) else judgement.row(entry)
        return judgement.verdict()


def _place(entry: Entry) -> tuple[int, bool]:
    return (entry.first, False) if isinstance(entry, Missing) else (entry.slot, True)


def found(verdict: Verdict) -> list[str]:
    return [str(finding) for finding in verdict.findings.kept]


def laws(verdict: Verdict) -> list[Law]:
    return [finding.law for finding in verdict.findings.kept]


# Sound histories


@pytest.mark.req("OWN-01")
def test_every_slot_that_ran_is_accounted_for() -> None:
    verdict = History(entries=rows(*range(1, 11)), opened=10).judged()

    assert found(verdict) == []
    assert str(verdict.equation) == "10 due = 10 ran"


@pytest.mark.req("OWN-01")
@pytest.mark.req("RISK-04")
def test_each_reason_is_counted_by_itself() -> None:
    entries: list[Entry] = [
        *rows(1, 2),
        row(3, RunStatus.ERROR),
        row(4, RunStatus.SKIPPED, reason=Reason.OVERLAP),
        row(5, RunStatus.CANCELLED, reason=Reason.REPLACED),
        row(6, RunStatus.CANCELLED),
        gap(7, 9, 3),
        row(10, RunStatus.RUNNING),
    ]
    coverage = (Span(at(0), at(6.5)), Span(at(9.5), at(10)))

    verdict = History(entries=entries, opened=10, coverage=coverage).judged()

    assert found(verdict) == []
    assert str(verdict.equation) == (
        "10 due = 3 ran (1 failed) + 1 cancelled + 1 cancelled (replaced) + 1 running + 1 skipped (overlap)"
        " + 3 missed (outage)"
    )
    assert verdict.equation.due == verdict.equation.accounted


def test_slots_that_are_being_caught_up_are_owed() -> None:
    schedule = minutely(overlap="queue", catch_up="spread")
    coverage = (Span(at(0), at(0.5)), Span(at(6.5), at(10)))
    entries: list[Entry] = [*rows(1, 2), gap(3, 4, 2, None), gap(5, 6, 2, GapReason.CATCH_UP_CAP), *rows(7, 8, 9, 10)]

    verdict = History(schedule=schedule, entries=entries, opened=10, coverage=coverage).judged()

    assert found(verdict) == []
    assert str(verdict.equation) == "10 due = 6 ran + 2 missed (catch_up_cap) + 2 owed"


def test_slots_of_a_pause_were_not_planned() -> None:
    active = minutely()
    paused = active.changed(at=at(3), state=ScheduleState.PAUSED)
    resumed = paused.changed(at=at(7.5), state=ScheduleState.ACTIVE)
    entries: list[Entry] = [*rows(1, 2, 3), *(row(minute, revision=3) for minute in (8, 9, 10))]

    verdict = History(
        schedule=resumed,
        revisions=[active.recorded(), paused.recorded(), resumed.recorded()],
        entries=entries,
        opened=10,
    ).judged()

    assert found(verdict) == []
    assert (str(verdict.equation), verdict.equation.paused) == ("6 due = 6 ran", 4)


def test_slots_of_a_schedule_that_was_broken_were_not_planned_and_it_says_so() -> None:
    active = minutely()
    broken = replace(active, opened_through=at(3) // SECOND).broken(at=at(4), reason="no such zone")
    mended = broken.changed(at=at(7.5), state=ScheduleState.ACTIVE)
    entries: list[Entry] = [*rows(1, 2, 3), *(row(minute, revision=3) for minute in (8, 9, 10))]

    verdict = History(
        schedule=mended,
        revisions=[active.recorded(), broken.recorded(), mended.recorded()],
        entries=entries,
        opened=10,
    ).judged()

    assert (found(verdict), verdict.equation.due) == ([], 6)
    assert verdict.notes == [
        "broke once, last after 2027-01-15T08:03:00Z until 2027-01-15T08:07:30Z: slots were not planned meanwhile"
    ]


def test_a_pause_that_lasts_is_counted_until_now() -> None:
    active = minutely()
    paused = active.changed(at=at(3), state=ScheduleState.PAUSED)

    verdict = History(
        schedule=paused, revisions=[active.recorded(), paused.recorded()], entries=rows(1, 2, 3), opened=3
    ).judged()

    assert (found(verdict), verdict.equation.paused) == ([], 7)


def test_an_edit_divides_the_slots_between_two_cadences() -> None:
    before = minutely()
    after = before.changed(at=at(4.5), cadence=every("2m"))
    entries: list[Entry] = [*rows(1, 2, 3, 4), row(6, revision=2), row(8, revision=2), row(10, revision=2)]

    verdict = History(
        schedule=after, revisions=[before.recorded(), after.recorded()], entries=entries, opened=10
    ).judged()

    assert (found(verdict), verdict.equation.due) == ([], 7)


def test_a_slot_within_its_grace_is_not_lost_yet() -> None:
    verdict = History(entries=rows(*range(1, 10)), opened=9, now=10.5, coverage=(Span(at(0), at(10.5)),)).judged()

    assert found(verdict) == []
    assert str(verdict.equation) == "10 due = 9 ran + 1 not opened yet"


def test_while_nobody_keeps_time_slots_are_not_lost() -> None:
    """Whoever keeps time next will find them late or missed, and record them as such."""
    verdict = History(entries=rows(1, 2), opened=2, coverage=(Span(at(0), at(2.5)),)).judged()

    assert found(verdict) == []
    assert str(verdict.equation) == "10 due = 2 ran + 8 not opened yet"


def test_who_has_just_come_back_is_given_the_grace_too() -> None:
    coverage = (Span(at(0), at(2.5)), Span(at(9.5), at(10)))

    assert found(History(entries=rows(1, 2), opened=2, coverage=coverage).judged()) == []


def test_slots_in_the_future_of_a_clock_that_was_set_back_are_accounted_for() -> None:
    verdict = History(entries=rows(*range(1, 11)), opened=10, now=5).judged()

    assert (found(verdict), verdict.equation.due) == ([], 10)


@pytest.mark.parametrize(
    "after",
    [
        [Span(at(2.5), at(60)), Span(at(60), at(60))],
        [Span(at(2.5), at(30)), Span(at(30), at(60)), Span(at(60), at(60))],
        [Span(at(2.5), at(61)), Span(at(60), at(61))],
    ],
    ids=["set back once", "set back twice", "set back and gone on"],
)
def test_what_was_missed_while_the_clock_was_ahead_stays_missed_when_it_is_set_back(after: list[Span]) -> None:
    """At minute 2 the clock said 60 for a moment; the timekeeper was there through the hour that it had skipped."""
    entries: list[Entry] = [*rows(1, 2), gap(3, 59, 57), *rows(60)]

    verdict = History(entries=entries, opened=60, now=10, coverage=(Span(at(0), at(2)), *after)).judged()

    assert found(verdict) == []


def test_a_clock_that_was_set_back_leaves_new_slots_their_grace() -> None:
    coverage = (Span(at(-5), at(60)),)

    assert found(History(entries=rows(1, 2), opened=2, now=3.5, coverage=coverage).judged()) == []
    assert laws(History(entries=rows(1, 2), opened=2, now=4.5, coverage=coverage).judged()) == [Law.LOST]


def test_runs_by_hand_stand_beside_the_slots() -> None:
    manual = row(2, kind=RunKind.MANUAL, own_key="m", id=RunId("by hand"))
    backfill = row(2.5, kind=RunKind.BACKFILL, own_key="b")

    verdict = History(entries=[*rows(1, 2, 3), manual, backfill], opened=3, now=3).judged()

    assert found(verdict) == []
    assert (verdict.equation.due, verdict.equation.extra) == (3, {RunKind.MANUAL: 1, RunKind.BACKFILL: 1})


def test_a_gap_may_join_two_outages_with_no_slot_between_them() -> None:
    coverage = (Span(at(0), at(1.5)), Span(at(4.2), at(4.8)), Span(at(7.5), at(10)))

    verdict = History(entries=[*rows(1), gap(2, 7, 6), *rows(8, 9, 10)], opened=10, coverage=coverage).judged()

    assert (found(verdict), verdict.equation.missed.total()) == ([], 6)


def test_jitter_moves_slots_over_the_border_of_an_outage() -> None:
    """A slot is missed by when it fires, not by its own time."""
    schedule = minutely(jitter_ms=20_000)
    before = schedule.fires_at(at(4) // SECOND)
    after = schedule.fires_at(at(6) // SECOND)
    coverage = (Span(at(0), before), Span(after, at(10)))

    verdict = History(
        schedule=schedule, entries=[*rows(1, 2, 3, 4), gap(5, 5, 1), *rows(*range(6, 11))], opened=10, coverage=coverage
    ).judged()

    assert found(verdict) == []


def test_a_month_of_outage_is_judged_without_stepping_through_it() -> None:
    month = 30 * 24 * 60
    schedule = replace(minutely(every("1s")), policies=Policies(jitter_ms=0))
    coverage = (Span(at(0), at(0.01)), Span(at(month), at(month + 10)))
    entries: list[Entry] = [gap(1 / 60, month - 1 / 60, month * 60 - 1), row(month)]

    verdict = History(schedule=schedule, entries=entries, opened=month, now=month, coverage=coverage).judged()

    assert (found(verdict), verdict.equation.due) == ([], month * 60)


def test_since_leaves_out_what_was_before() -> None:
    coverage = (Span(at(0), at(0.5)), Span(at(5.5), at(10)))

    verdict = History(entries=[gap(1, 5, 5), *rows(6, 7, 8, 9, 10)], opened=10, coverage=coverage, since=3).judged()

    assert found(verdict) == []
    assert str(verdict.equation) == "7 due = 5 ran + 2 missed (outage)"


def test_a_schedule_that_fires_once_is_done_after_it() -> None:
    schedule = minutely(once(datetime.fromtimestamp(BORN + 120, UTC)))

    verdict = History(schedule=schedule, entries=rows(2), opened=2).judged()

    assert (found(verdict), str(verdict.equation)) == ([], "1 due = 1 ran")


# Lost


@pytest.mark.req("OWN-01", error=True)
def test_a_slot_without_row_or_gap_is_lost() -> None:
    verdict = History(entries=rows(1, 2, 4, 5, 6, 9, 10), opened=10).judged()

    why = "opened, but has neither row nor gap, and is not owed"
    assert found(verdict) == [
        f"lost: 2027-01-15T08:03:00Z: {why}",
        f"lost: 2027-01-15T08:07:00Z through 2027-01-15T08:08:00Z, 2 slots: {why}",
    ]
    assert verdict.findings.counts == {Law.LOST: 3}
    assert str(verdict.equation) == "10 due = 7 ran + 3 lost"


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.req("RISK-04", error=True)
def test_a_slot_that_a_living_timekeeper_leaves_unopened_is_lost() -> None:
    verdict = History(entries=rows(1, 2, 3, 4, 5, 6, 7), opened=7).judged()

    assert found(verdict) == [
        "lost: 2027-01-15T08:08:00Z: due for longer than the grace while a timekeeper was alive, but was not opened"
    ]
    assert str(verdict.equation) == "10 due = 7 ran + 2 not opened yet + 1 lost"


def test_slots_between_two_revisions_are_lost_if_nobody_opened_them() -> None:
    before = minutely()
    after = before.changed(at=at(5), cadence=every("2m"))

    verdict = History(
        schedule=after,
        revisions=[before.recorded(), after.recorded()],
        entries=[*rows(1, 2, 3), row(6, revision=2)],
        opened=6,
        now=6,
    ).judged()

    assert [(finding.law, finding.slots) for finding in verdict.findings.kept] == [(Law.LOST, 2)]


def test_of_many_findings_the_first_are_kept_and_all_are_counted() -> None:
    odd = rows(*range(1, 600, 2))

    verdict = History(entries=odd, opened=600, now=600).judged()

    assert len(verdict.findings.kept) == 100
    assert verdict.findings.counts == {Law.LOST: 300}


# Doubled


@pytest.mark.req("OWN-01", error=True)
def test_two_rows_for_one_slot_are_doubled() -> None:
    again = row(2, id=RunId("again"))

    verdict = History(entries=[*rows(1, 2), again, *rows(3)], opened=3, now=3).judged()

    assert found(verdict) == ["doubled: 2027-01-15T08:02:00Z: again is a second row for this slot"]
    assert verdict.equation.due == 3


OUTAGE_1_TO_4 = (Span(at(0), at(0.5)), Span(at(4.5), at(10)))


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.parametrize("minute", [1, 3, 4])
def test_a_row_inside_a_gap_is_doubled(minute: int) -> None:
    verdict = History(entries=[gap(1, 4, 4), *rows(minute, 5)], opened=5, now=5, coverage=OUTAGE_1_TO_4).judged()

    assert found(verdict) == [
        f"doubled: 2027-01-15T08:0{minute}:00Z: run {minute} has a slot that is also recorded as missed or owed"
    ]


def test_a_slot_in_a_gap_that_is_also_owed_is_doubled() -> None:
    entries: list[Entry] = [gap(1, 3, 3), gap(3, 4, 2, None), *rows(5)]

    verdict = History(entries=entries, opened=5, now=5, coverage=OUTAGE_1_TO_4).judged()

    assert laws(verdict) == [Law.DOUBLED]


@pytest.mark.req("OWN-01", error=True)
def test_two_completed_jobs_of_one_chain_are_doubled() -> None:
    verdict = History(entries=[row(1, completed=2)], opened=1, now=1).judged()

    assert found(verdict) == ["doubled: 2027-01-15T08:01:00Z: run 1 has 2 jobs that completed, in one chain of retries"]


# Unplanned


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.parametrize(
    ("stranger", "why"),
    [
        (row(2.5), "is no slot of revision 1: Every 1 minute"),
        (row(-1), "lies before the first revision"),
    ],
)
def test_a_row_that_nobody_planned_is_unplanned(stranger: AuditedRun, why: str) -> None:
    verdict = History(entries=[*rows(1, 2, 3), stranger], opened=3, now=3).judged()

    (finding,) = verdict.findings.kept
    assert (finding.law, finding.text) == (Law.UNPLANNED, f"{stranger.run.id} {why}")
    assert verdict.equation.due == 3


def test_a_row_that_names_another_revision_is_unplanned() -> None:
    verdict = History(entries=[*rows(1, 2), row(3, revision=7)], opened=3, now=3).judged()

    (finding,) = verdict.findings.kept
    assert (finding.law, finding.text) == (Law.UNPLANNED, "run 3 names revision 7, but 1 was in force")
    assert str(verdict.equation) == "3 due = 3 ran"


def test_a_row_of_a_pause_is_unplanned() -> None:
    active = minutely()
    paused = active.changed(at=at(3), state=ScheduleState.PAUSED)

    verdict = History(
        schedule=paused, revisions=[active.recorded(), paused.recorded()], entries=rows(1, 2, 3, 4), opened=3, now=5
    ).judged()

    (finding,) = verdict.findings.kept
    assert finding.text == "run 4 was planned by nobody: revision 2 was in force, and paused"


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.parametrize("slots", [3, 5])
def test_a_gap_that_miscounts_is_unplanned(slots: int) -> None:
    verdict = History(entries=[gap(1, 4, slots), *rows(5)], opened=5, now=5, coverage=OUTAGE_1_TO_4).judged()

    (finding,) = verdict.findings.kept
    assert finding.law is Law.UNPLANNED
    assert finding.text == "recorded as missed (outage), but the cadence has 4 slots there: Every 1 minute"
    assert str(verdict.equation) == "5 due = 1 ran + 4 missed (outage)"


def test_a_gap_of_another_revision_is_unplanned() -> None:
    verdict = History(entries=[gap(1, 4, 4, revision=2), *rows(5)], opened=5, now=5, coverage=OUTAGE_1_TO_4).judged()

    assert laws(verdict) == [Law.UNPLANNED]


# Stuck


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.parametrize("status", [RunStatus.PENDING, RunStatus.RUNNING])
def test_a_run_without_a_live_job_is_stuck(status: RunStatus) -> None:
    verdict = History(entries=[row(1, status, live=None)], opened=1, now=1).judged()

    assert found(verdict) == [f"stuck: 2027-01-15T08:01:00Z: run 1 is {status}, but none of its jobs is live"]


def held(*, seen: float | None) -> LiveJob:
    seen_at = None if seen is None else at(seen)
    lease = None if seen is None else Micros(30 * SECOND)
    return LiveJob(id=JobId("job 1"), session=SessionId("ses"), seen_at=seen_at, lease=lease)


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.parametrize(
    ("live", "why"),
    [
        (held(seen=None), "is running in session ses, which is gone"),
        (
            held(seen=8.9),
            "is running in session ses, which was last seen at 2027-01-15T08:08:54Z, and nobody has taken over",
        ),
    ],
)
def test_a_run_in_a_session_that_is_gone_is_stuck(live: LiveJob, why: str) -> None:
    verdict = History(entries=[row(1, RunStatus.RUNNING, live=live), *rows(*range(2, 11))], opened=10).judged()

    (finding,) = verdict.findings.kept
    assert (finding.law, finding.text) == (Law.STUCK, f"run 1 {why}")


def test_a_session_that_may_still_be_rescued_is_not_stuck() -> None:
    """For one more lease, and for as long as nobody is there who could."""
    late = row(1, RunStatus.RUNNING, live=held(seen=9.1))
    alone = row(1, RunStatus.RUNNING, live=held(seen=1))

    assert found(History(entries=[late, *rows(*range(2, 11))], opened=10).judged()) == []
    assert found(History(entries=[alone], opened=1, coverage=(Span(at(0), at(1.5)),)).judged()) == []


# Backwards


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (row(1, completed_at=None), "is success, but has no time of completion"),
        (row(1, RunStatus.RUNNING, completed_at=at(2)), "is running, but was completed at 2027-01-15T08:02:00Z"),
        (row(1, RunStatus.SKIPPED), "is skipped, but for no reason"),
        (row(1, live=LiveJob(id=JobId("job 1"))), "is success, but its job job 1 is live"),
    ],
)
def test_a_row_that_contradicts_itself_is_backwards(wrong: AuditedRun, why: str) -> None:
    verdict = History(entries=[wrong], opened=1, now=1).judged()

    (finding,) = verdict.findings.kept
    assert (finding.law, finding.text) == (Law.BACKWARDS, f"run 1 {why}")


@pytest.mark.req("OWN-01", error=True)
def test_a_revision_in_force_from_before_the_last_is_backwards() -> None:
    first = minutely()
    second = first.changed(at=at(5))
    revisions = [first.recorded(), replace(second.recorded(), effective_from=first.recorded().effective_from - 60)]

    verdict = History(schedule=second, revisions=revisions, entries=[row(1, revision=2)], opened=1, now=1).judged()

    assert found(verdict) == ["backwards: revision 2 is in force from before revision 1"]


@pytest.mark.req("OWN-01", error=True)
def test_a_missing_revision_is_backwards() -> None:
    first = minutely()
    third = replace(first.changed(at=at(2)), revision=3)

    verdict = History(
        schedule=third, revisions=[first.recorded(), third.recorded()], entries=rows(1, 2), opened=2, now=2
    ).judged()

    assert found(verdict) == ["backwards: is at revision 3, but has not all up to it, in order"]


def test_a_schedule_that_differs_from_its_last_revision_is_backwards() -> None:
    schedule = minutely()
    paused = replace(schedule, state=ScheduleState.PAUSED)

    verdict = History(schedule=paused, revisions=[schedule.recorded()], entries=rows(1), opened=1, now=1).judged()

    assert found(verdict) == ["backwards: is paused, but its last revision says active"]


@pytest.mark.req("OWN-01", error=True)
def test_rows_beyond_what_was_opened_are_backwards() -> None:
    verdict = History(entries=rows(1, 2, 3), opened=2, now=3).judged()

    assert found(verdict) == [
        "backwards: 2027-01-15T08:03:00Z: recorded, though slots are open through 2027-01-15T08:02:00Z only"
    ]


def test_what_was_opened_cannot_lie_before_the_last_revision() -> None:
    first = minutely()
    second = first.changed(at=at(5))

    verdict = History(
        schedule=second, revisions=[first.recorded(), second.recorded()], entries=rows(*range(1, 6)), opened=4, now=5
    ).judged()

    assert laws(verdict) == [Law.BACKWARDS, Law.BACKWARDS]


# Missed without outage


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.req("RISK-04", error=True)
@pytest.mark.parametrize("reason", [*GapReason, None])
@pytest.mark.parametrize(
    "coverage",
    [
        (ALIVE,),
        (Span(at(0), at(1.5)), Span(at(4.5), at(10))),
        (Span(at(0), at(0.5)), Span(at(3.5), at(10))),
        (Span(at(0), at(0.5)), Span(at(1.5), at(2.5)), Span(at(4.5), at(10))),
    ],
)
def test_slots_are_missed_in_an_outage_or_not_at_all(reason: GapReason | None, coverage: tuple[Span, ...]) -> None:
    verdict = History(entries=[gap(1, 4, 4, reason), *rows(5)], opened=5, now=5, coverage=coverage).judged()

    (finding,) = verdict.findings.kept
    assert finding.law is Law.MISSED_WITHOUT_OUTAGE
    assert "a timekeeper was alive when" in finding.text


def test_a_silence_too_short_for_an_outage_is_none() -> None:
    coverage = (Span(at(0), at(0.6)), Span(at(1.6), at(10)))

    assert laws(History(entries=[gap(1, 1, 1), *rows(2)], opened=2, now=2, coverage=coverage).judged()) == [
        Law.MISSED_WITHOUT_OUTAGE
    ]


# Other tz data


def test_with_other_tz_data_the_ledger_is_taken_at_its_word() -> None:
    schedule = minutely(cron("*/2 * * * *", "Europe/Berlin"))

    verdict = History(schedule=schedule, entries=rows(2, 3, 8), opened=8, now=8, tz_version="1999z").judged()

    assert found(verdict) == []
    assert verdict.equation.due == 3
    (note,) = verdict.notes
    assert "1999z" in note


def test_with_other_tz_data_what_is_doubled_is_still_found() -> None:
    schedule = minutely(cron("* * * * *", "Europe/Berlin"))
    entries: list[Entry] = [*rows(1, 2), row(2, id=RunId("again")), gap(3, 5, 3), *rows(4, 6)]

    verdict = History(schedule=schedule, entries=entries, opened=6, now=6, tz_version="1999z").judged()

    assert laws(verdict) == [Law.DOUBLED, Law.DOUBLED]


@pytest.mark.parametrize("cadence", [every("1m"), cron("* * * * *"), cron("* * * * *").within()])
def test_what_needs_no_zone_is_worked_out_with_any_tz_data(cadence: Cadence) -> None:
    verdict = History(schedule=minutely(cadence), entries=rows(1, 3), opened=3, now=3, tz_version="1999z").judged()

    assert (laws(verdict), verdict.notes) == ([Law.LOST], [])


def test_a_cadence_that_can_no_longer_be_read_is_said_to_be_so() -> None:
    readable = minutely()
    revision = replace(readable.recorded(), cadence=UnreadableCron("* * * * *", "Mars/Olympus", "no such zone"))

    verdict = History(schedule=readable, revisions=[revision], entries=rows(1, 3), opened=3, now=3).judged()

    assert (found(verdict), verdict.equation.due, len(verdict.notes)) == ([], 2, 1)
