"""The checker of schedules is itself seen red: each law finds what breaks it, and nothing in a sound ledger."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from tests.acceptance import checker, ledger_checker
from tests.acceptance.checker import Facts, Finished, Run
from tests.acceptance.journal import Line
from tests.acceptance.ledger_checker import SECOND, ArrearsRow, GapRow, JobOfRun, Ledger, LedgerRow, ScheduleRow

NOBODY: dict[int, float] = {}
PLANNED = {"s": range(1, 9)}


def _row(slot: int, status: str = "success", reason: str | None = None) -> LedgerRow:
    at = slot * SECOND
    return LedgerRow(f"run-{slot}", "s", "slot", at, at, at, status, reason, f"job-{slot}", 1, None)


def _entry(slot: int, *, pid: int = 1, left: bool = True, job: str | None = None) -> Run:
    key = f"s:1970-01-01T00:00:{slot:02}Z"
    line = Line(
        event="enter", pid=pid, at=slot, job=job or f"job-{slot}", chain=f"job-{slot}", key=key, run=f"run-{slot}"
    )
    return Run(line, slot + 0.5, left)


# Slots 1, 2 and 3 ran, 4 was skipped, 5 through 7 were missed, 8 was replaced.
ROWS = [_row(1), _row(2), _row(3), _row(4, "skipped", "overlap"), _row(8, "cancelled", "replaced")]
SOUND = Ledger(
    schedules=[ScheduleRow("s", "active", "replace", 1, 8 * SECOND, 0)],
    rows=ROWS,
    gaps=[GapRow("s", 5 * SECOND, 7 * SECOND, 3, "outage")],
    arrears=[],
    coverage=[],
    ended=[JobOfRun(f"job-{slot}", f"run-{slot}", "COMPLETED") for slot in (1, 2, 3)],
)
RUNS = [_entry(1), _entry(2), _entry(3)]


def test_a_sound_ledger_breaks_no_law() -> None:
    checker.require(
        ledger_checker.lost(SOUND, PLANNED),
        ledger_checker.not_ended(SOUND),
        ledger_checker.unlike_the_journal(SOUND, RUNS, NOBODY),
    )


def _with(*rows: LedgerRow) -> Ledger:
    """Rows take the place of those of their slots."""
    slots = {row.slot for row in rows}
    return replace(SOUND, rows=[*(row for row in ROWS if row.slot not in slots), *rows])


BROKEN: dict[str, tuple[Callable[[], Iterable[str]], str]] = {
    "a slot without row": (lambda: ledger_checker.lost(replace(SOUND, rows=ROWS[1:]), PLANNED), "00:00:01: lost"),
    "two rows": (lambda: ledger_checker.lost(replace(SOUND, rows=[*ROWS, _row(2)]), PLANNED), "00:00:02: 2 rows"),
    "a row in a gap": (
        lambda: ledger_checker.lost(_with(_row(6)), PLANNED),
        "00:00:06: a row, not planned or in a gap",
    ),
    "a row beyond the plan": (lambda: ledger_checker.lost(_with(_row(9)), PLANNED), "00:00:09: a row, not planned"),
    "a gap miscounted": (
        lambda: ledger_checker.lost(replace(SOUND, gaps=[SOUND.gaps[0]._replace(slots=2)]), PLANNED),
        "has 3 slots",
    ),
    "two gaps for one slot": (
        lambda: ledger_checker.lost(
            replace(SOUND, gaps=[SOUND.gaps[0], GapRow("s", 7 * SECOND, 7 * SECOND, 1, "x")]), PLANNED
        ),
        "1 of which are in another",
    ),
    "a gap where none may be": (lambda: ledger_checker.missed(SOUND), "outage"),
    "arrears where none may be": (
        lambda: ledger_checker.missed(replace(SOUND, gaps=[], arrears=[ArrearsRow("s", 0, 0, 1)])),
        "ArrearsRow",
    ),
    "a run that goes on": (lambda: ledger_checker.not_ended(_with(_row(1, "running"))), "not ended"),
    "a success that nobody left": (
        lambda: ledger_checker.unlike_the_journal(SOUND, [_entry(1, left=False), *RUNS[1:]], NOBODY),
        "its last attempt was never left",
    ),
    "a success of no job": (
        lambda: ledger_checker.unlike_the_journal(replace(SOUND, ended=SOUND.ended[1:]), RUNS, NOBODY),
        "0 of its jobs completed",
    ),
    "a success of two jobs": (
        lambda: ledger_checker.unlike_the_journal(
            replace(SOUND, ended=[*SOUND.ended, JobOfRun("again", "run-1", "COMPLETED")]), RUNS, NOBODY
        ),
        "2 of its jobs completed",
    ),
    "a skipped slot that ran": (
        lambda: ledger_checker.unlike_the_journal(SOUND, [*RUNS, _entry(4)], NOBODY),
        "entered 1 times all the same",
    ),
    "an error of a process that lived": (
        lambda: ledger_checker.unlike_the_journal(
            replace(_with(_row(3, "error")), ended=SOUND.ended[:2]), [*RUNS[:2], _entry(3, left=False)], NOBODY
        ),
        "it was not killed",
    ),
    "a run without row": (
        lambda: ledger_checker.unlike_the_journal(SOUND, [*RUNS, _entry(9)], NOBODY),
        "entered, but it has no row",
    ),
    "an end that its policy does not know": (
        lambda: ledger_checker.unlike_the_policies(_with(_row(4, "skipped", "overlap"))),
        "not by replace",
    ),
    "a slot that was entered twice": (
        lambda: ledger_checker.entered_too_often(_facts(), [*RUNS, _entry(1, job="other")], NOBODY),
        "2 times, 0 hits",
    ),
    "a slow recovery": (lambda: ledger_checker.slower_than(3, {"job-1": (0.0, 9.0)}, [(1.0, 2.0)]), "after 9.00 s"),
}


@pytest.mark.parametrize(("law", "said"), BROKEN.values(), ids=BROKEN)
def test_what_breaks_a_law_is_found(law: Callable[[], Iterable[str]], said: str) -> None:
    assert said in "\n".join(law())


def test_a_slot_that_a_kill_hit_may_be_entered_again() -> None:
    killed = {7: 1.5}
    failed = Finished("dead", "job-1", 1, None, "FAILED", "worker lost", "wide", None, "x", 1, 0)
    runs = [_entry(1, pid=7, left=True, job="dead"), *RUNS]
    assert not list(ledger_checker.entered_too_often(_facts(failed), runs, killed))


def test_what_took_long_because_nobody_lived_was_not_slow() -> None:
    assert not list(ledger_checker.slower_than(3, {"job-1": (0.0, 9.0)}, [(1.0, 6.0), (2.0, 7.0)]))


def _facts(*finished: Finished) -> Facts:
    return Facts(live=[], finished=list(finished), pools=[], sessions=[])
