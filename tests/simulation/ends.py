"""How runs must have ended, by the journal of the handlers who did the work."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import apsw

from duly.domain.instants import SECOND
from duly.domain.policies import Overlap
from tests.simulation.laws import Entry, Journal, require
from tests.simulation.lives import Life

_AS_ITS_JOB = {"COMPLETED": "success", "FAILED": "error", "SKIPPED": "skipped", "CANCELLED": "cancelled"}
# What handlers say themselves: these ends they have reported, nobody else has for them.
_OWN_WORDS = ("ValueError: bad luck", "DoNotRetry: no use", "not today", None)


class Run(NamedTuple):
    id: str
    schedule_id: str
    revision: int
    own_key: str
    scheduled_for: int
    status: str
    reason: str | None
    job_id: str | None


class Ended(NamedTuple):
    id: str
    status: str
    token: int | None
    error: str | None
    ledger_run: str


def check_runs(database: apsw.Connection, journal: Journal, lives: Mapping[str, Life], *, in_order: bool) -> None:
    """`in_order` says whether slots that wait for each other must have begun in order."""
    runs = [Run(*row) for row in database.execute(f"SELECT {', '.join(Run._fields)} FROM schedule_runs")]
    ended = [Ended(*row) for row in database.execute(f"SELECT {', '.join(Ended._fields)} FROM finished_jobs")]
    entered = {entry.job: entry for entry in journal.entries}
    attempts: dict[str, list[Ended]] = defaultdict(list)
    for job in ended:
        attempts[job.ledger_run].append(job)
    for run in runs:
        require(run.status not in ("pending", "running"), f"{run.id} has not ended: {run.status}")
        _check_attempts(run, attempts[run.id], entered)
    _check_rows(runs, lives)
    for name, life in lives.items():
        if in_order:
            _check_order(name, [run for run in runs if run.schedule_id == name], life, journal)
        alone = [run for run in runs if run.schedule_id == name and not _may_overlap(run, life)]
        _check_company(name, [job for run in alone for job in attempts[run.id]], entered)


def _check_rows(runs: list[Run], lives: Mapping[str, Life]) -> None:
    """Nothing came or went since it was seen, and nothing is there twice."""
    rows = sorted((run.schedule_id, run.own_key, run.scheduled_for // SECOND) for run in runs)
    seen = [(name, "", slot) for name, life in lives.items() for slot, fate in life.fates.items() if fate == "row"]
    seen += [(name, key, slot) for name, life in lives.items() for key, slots in life.extra.items() for slot in slots]
    require(rows == sorted(seen), f"rows came or went: {set(rows) ^ set(seen)}")


def _check_attempts(run: Run, jobs: list[Ended], entered: Mapping[str, Entry]) -> None:
    """A run ends as the last attempt did; at most one attempt succeeded, and the handler knows of it."""
    if not jobs:
        require(run.job_id is None, f"{run.id} names {run.job_id}, which is not there")
        require(run.reason in ("overlap", "coalesced", "replaced", "launch"), f"{run.id} was not put, for no reason")
        return
    done = [job for job in jobs if job.status == "COMPLETED"]
    require(len(done) <= 1, f"{run.id} was done {len(done)} times")
    last = [job for job in jobs if job.status != "FAILED"] or jobs
    require(_AS_ITS_JOB[last[0].status] == run.status, f"{run.id} is {run.status}, and its last job {last[0].status}")
    for job in done:
        entry = entered.get(job.id)
        require(
            entry is not None and entry.token == job.token and entry.left_at is not None,
            f"{run.id} is done, and no handler did it",
        )


def _check_order(name: str, runs: list[Run], life: Life, journal: Journal) -> None:
    """Slots that wait for each other begin in order, except for what is caught up beside them."""
    began: dict[str, int] = {}
    for entry in journal.entries:
        began.setdefault(entry.chain, entry.entered_at)
    for term in life.terms:
        if term.policies.overlap is Overlap.QUEUE:
            queued = sorted(
                (run.scheduled_for, began[run.job_id])
                for run in runs
                if run.revision == term.number
                and not run.own_key
                and run.scheduled_for // SECOND not in life.caught_up
                and run.job_id in began
            )
            for (earlier, first), (later, second) in pairwise(queued):
                require(first <= second, f"{name}: {later // SECOND} began before {earlier // SECOND}")


def _may_overlap(run: Run, life: Life) -> bool:
    return life.term(run.revision).policies.overlap is Overlap.ALLOW


def _check_company(name: str, jobs: list[Ended], entered: Mapping[str, Entry]) -> None:
    """Runs that were not allowed to never overlapped.

    One whose claim was taken away, because its process was silent for too long, may go on for a while; nothing of it is
    recorded.
    """
    entries: list[Entry] = []
    for job in jobs:
        entry = entered.get(job.id)
        if entry is not None and entry.token == job.token and job.error in _OWN_WORDS:
            entries.append(entry)
    entries.sort(key=lambda entry: (entry.entered_at, entry.left_at or 0))
    for earlier, later in pairwise(entries):
        require(
            earlier.left_at is not None and earlier.left_at <= later.entered_at,
            f"{name}: {earlier.job} and {later.job} ran at once",
        )
