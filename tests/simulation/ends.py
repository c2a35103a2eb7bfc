"""How runs must have ended, by the journal of the handlers who did the work."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import apsw

from tests.simulation.laws import Entry, Journal, require
from tests.simulation.lives import Life

_RUNS = "SELECT id, schedule_id, revision, kind, own_key, scheduled_for / 1000000, status, reason, job_id FROM schedule_runs"
_ENDED = "SELECT id, status, token, error, ledger_run, lane FROM finished_jobs ORDER BY attempt"
_AS_ITS_JOB = {"COMPLETED": "success", "FAILED": "error", "SKIPPED": "skipped", "CANCELLED": "cancelled"}
# What handlers say themselves: these ends they have reported, nobody else has for them.
_OWN_WORDS = ("ValueError: bad luck", "DoNotRetry: no use", "not today", None)


def check_runs(database: apsw.Connection, journal: Journal, lives: Mapping[str, Life]) -> None:
    attempts: dict[str, list[Any]] = defaultdict(list)
    for job in database.execute(_ENDED):
        attempts[job[4]].append(job)
    entered = {entry.job: entry for entry in journal.entries}
    known: set[tuple[str, int, str]] = set()
    for run, schedule, _, kind, own_key, slot, status, reason, job in database.execute(_RUNS):
        require((schedule, slot, own_key) not in known, f"{schedule}: {slot} {own_key} has two rows")
        known.add((schedule, slot, own_key))
        require(status not in ("pending", "running"), f"{run} has not ended: {status}")
        require(slot in lives[schedule].fates or kind != "slot", f"{schedule}: {slot} has a row that nobody saw")
        _check_attempts(run, status, reason, job, attempts[run], entered)
    for name, life in lives.items():
        rows = {slot for schedule, slot, own_key in known if schedule == name and not own_key}
        require(rows == {slot for slot, fate in life.fates.items() if fate == "row"}, f"{name}: rows came or went")
    _check_company(database, entered)


def _check_attempts(
    run: str, status: str, reason: str | None, job: str | None, jobs: list[Any], entered: Mapping[str, Entry]
) -> None:
    """A run ends as the last attempt did; at most one attempt succeeded, and the handler knows of it."""
    if not jobs:
        require(job is None, f"{run} names {job}, which is not there")
        require(reason in ("overlap", "coalesced", "replaced", "launch"), f"{run} was not put, for no reason")
        return
    done = [ended for ended in jobs if ended[1] == "COMPLETED"]
    require(len(done) <= 1, f"{run} was done {len(done)} times")
    require(_AS_ITS_JOB[jobs[-1][1]] == status, f"{run} is {status}, and its last job {jobs[-1][1]}")
    for ended in done:
        entry = entered.get(ended[0])
        require(
            entry is not None and entry.token == ended[2] and entry.left_at is not None,
            f"{run} is done, and no handler did it",
        )


def _check_company(database: apsw.Connection, entered: Mapping[str, Entry]) -> None:
    """Runs of one schedule never overlapped, unless they were allowed to: those have no lane.

    A run whose claim was taken away, because its process was silent for too long, may go on for a while; nothing of it
    is recorded.
    """
    lanes: dict[str, list[Entry]] = defaultdict(list)
    for job, _, token, error, _, lane in database.execute(_ENDED):
        entry = entered.get(job)
        if lane is not None and entry is not None and entry.token == token and error in _OWN_WORDS:
            lanes[lane].append(entry)
    for lane, entries in lanes.items():
        entries.sort(key=lambda entry: (entry.entered_at, entry.left_at or 0))
        for earlier, later in pairwise(entries):
            require(
                earlier.left_at is not None and earlier.left_at <= later.entered_at,
                f"{lane}: {earlier.job} and {later.job} ran at once",
            )
