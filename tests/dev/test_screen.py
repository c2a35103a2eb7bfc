"""What `duly dev` prints, line by line."""

import io
from datetime import UTC, datetime

import pytest

from duly.dev.screen import Screen
from duly.domain.cadence import cron, every
from duly.domain.decisions import Decision, Fate
from duly.domain.ids import JobId, JobKey, Lane, PoolName, RunId, ScheduleId, SessionId, Token
from duly.domain.instants import SECOND, Instant, Micros, instant_of
from duly.domain.jobs import Ending, JobState, JobStatus
from duly.domain.payloads import EMPTY
from duly.domain.policies import Policies
from duly.domain.runs import GapReason, Reason
from duly.domain.schedules import Schedule, Target, new_schedule
from duly.domain.sessions import ClaimedJob, Report, Rescue

NOON = datetime(2026, 11, 17, 12, 0, 5, tzinfo=UTC)
SLOT = Instant(instant_of(NOON, field="noon") - 5 * SECOND)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen_on(file: io.StringIO) -> Screen:
    return Screen(lambda: NOON, file, UTC)


def job(attempt: int = 1, *, key: str | None = "digest:2026-11-17T12:00:00Z") -> ClaimedJob:
    return ClaimedJob(
        id=JobId("job_1"),
        kind="digest",
        payload=EMPTY,
        key=None if key is None else JobKey(key),
        lane=None if key is None else Lane("schedule:digest"),
        pool=PoolName("default"),
        resources=None,
        attempt=attempt,
        max_attempts=3,
        run_at=SLOT,
        created_at=SLOT,
        timeout_ms=None,
        chain=JobId("job_1"),
        token=Token(1),
        state=JobState.RUNNING,
        rank=0,
        position=0,
        ledger_run=None if key is None else RunId("run_1"),
    )


def report(
    status: JobStatus, *, attempt: int = 1, error: str | None = None, place: str | None = None, ran_ms: int = 12
) -> Report:
    return Report(job(attempt), Ending(status=status, error=error, place=place), ran_for=Micros(ran_ms * 1_000))


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (report(JobStatus.COMPLETED), "ran in 12 ms"),
        (report(JobStatus.COMPLETED, attempt=2, ran_ms=8_040), "ran in 8.0 s, attempt 2"),
        (
            report(JobStatus.FAILED, error="OSError: no\nmore"),
            "attempt 1 of 3 failed after 12 ms: OSError: no; will be tried again",
        ),
        (report(JobStatus.FAILED, attempt=3, error="OSError: no"), "failed after 12 ms, attempt 3: OSError: no"),
        (
            report(JobStatus.FAILED, attempt=3, error="OSError: no", place="schedules.py:12 in helper"),
            "failed after 12 ms, attempt 3: OSError: no (schedules.py:12 in helper)",
        ),
        (report(JobStatus.CANCELLED, error="enough"), "cancelled after 12 ms: enough"),
        (report(JobStatus.CANCELLED, error="\x1b[2J"), "cancelled after 12 ms: \N{REPLACEMENT CHARACTER}[2J"),
    ],
)
def test_an_end_is_a_line_with_its_schedule_slot_and_outcome(ended: Report, said: str) -> None:
    file = io.StringIO()

    screen_on(file).exchanged([], [ended])

    assert file.getvalue() == f"12:00:05  digest        12:00:00  {said}\n"


def test_a_job_that_no_schedule_put_is_named_by_its_kind() -> None:
    file = io.StringIO()

    screen_on(file).exchanged([], [Report(job(key=None), Ending(status=JobStatus.COMPLETED))])

    assert file.getvalue() == "12:00:05  digest                  ran in 0 ms\n"


def decision(fate: Fate, **facts: object) -> Decision:
    return Decision(schedule_id=ScheduleId("digest"), at=SLOT, fate=fate, slot=SLOT, **facts)  # type: ignore[arg-type]


@pytest.mark.req("CRON-12")
def test_what_does_not_run_says_why() -> None:
    file = io.StringIO()

    screen_on(file).decided(
        [
            decision(Fate.OPENED, run_id=RunId("run_1")),
            decision(Fate.SKIPPED, reason=Reason.OVERLAP, detail="run_0 was still in flight"),
            decision(Fate.MISSED, reason=GapReason.OUTAGE, count=59),
        ]
    )

    assert file.getvalue().splitlines() == [
        "12:00:05  digest        12:00:00  skipped: overlap, run_0 was still in flight",
        "12:00:05  digest        12:00:00  missed (59 slots): outage",
    ]


def schedule(name: str, cadence: str, now: Instant = SLOT) -> Schedule:
    return new_schedule(
        schedule_id=name,
        owner="local",
        cadence=every(cadence) if cadence.endswith("s") else cron(cadence),
        target=Target(kind="k"),
        policies=Policies(),
        now=now,
    )


def test_slots_in_a_row_with_one_fate_are_one_line() -> None:
    file = io.StringIO()
    late = [decision(Fate.SKIPPED, reason=Reason.OVERLAP, detail="run_1 was still running") for _ in range(3)]
    other = decision(Fate.SKIPPED, reason=Reason.OVERLAP, detail="run_2 was still running")

    screen_on(file).decided([*late, other])

    assert [line.partition("12:00:00  ")[2] for line in file.getvalue().splitlines()] == [
        "skipped (3 slots): overlap, run_1 was still running",
        "skipped: overlap, run_2 was still running",
    ]


def test_schedules_are_shown_in_words_with_their_next_five_fires() -> None:
    file = io.StringIO()

    screen_on(file).scheduled([schedule("often", "30s"), schedule("a-long-name-indeed", "0 9 * * *")])

    assert file.getvalue().splitlines() == [
        "  often               Every 30 seconds",
        "                      next 12:00:30, 12:01:00, 12:01:30, 12:02:00, 12:02:30",
        "  a-long-name-indeed  At 09:00 every day, UTC",
        f"{'':22}next Wed 18 Nov 09:00, Thu 19 Nov 09:00, Fri 20 Nov 09:00, Sat 21 Nov 09:00, Sun 22 Nov 09:00",
        "",
    ]


def test_what_is_overdue_is_not_listed_as_to_come() -> None:
    file = io.StringIO()
    before = Instant(SLOT - 600 * SECOND)

    screen_on(file).scheduled([schedule("often", "30s", now=before)])

    told = file.getvalue().splitlines()[1].strip()
    assert told == "overdue since 11:50:30; next 12:00:30, 12:01:00, 12:01:30, 12:02:00, 12:02:30"


def test_colour_is_for_terminals() -> None:
    pipe, terminal = io.StringIO(), Terminal()
    for file in (pipe, terminal):
        screen_on(file).exchanged([], [report(JobStatus.COMPLETED)])

    assert "\x1b" not in pipe.getvalue()
    assert "\x1b[32mran in 12 ms\x1b[0m" in terminal.getvalue()


def test_a_reader_that_went_away_stops_nobody() -> None:
    file = io.StringIO()
    screen = screen_on(file)
    file.close()

    screen.failed("open", ValueError("no"))
    screen.session_lost(SessionId("ses"), running=1)


def test_only_a_rescue_of_something_is_told() -> None:
    file = io.StringIO()
    nothing = Rescue(session=SessionId("s"), returned=0, failed=0, tickets=0, ended=True)

    screen_on(file).rescued([nothing])
    assert file.getvalue() == ""
    screen_on(file).rescued([Rescue(session=SessionId("s"), returned=1, failed=2, tickets=0, ended=True)])
    assert file.getvalue() == "12:00:05  took over from a dead worker: 1 had not begun, 2 had and will be tried again\n"
