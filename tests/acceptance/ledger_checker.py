"""The laws of schedules, checked from outside: plain SQL on the tables, the handlers' journal, and arithmetic.

As in `checker`, each law answers its violations. Slots are UTC seconds.
"""

import asyncio
import subprocess
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.acceptance import checker
from tests.acceptance.checker import Facts, Run, looked_up
from tests.acceptance.journal import Line

SECOND = 1_000_000
Span = tuple[float, float]
_ROOT = Path(__file__).parents[2]


class ScheduleRow(NamedTuple):
    id: str
    state: str
    overlap: str
    max_attempts: int
    opened_through: int
    created_at: int


class LedgerRow(NamedTuple):
    id: str
    schedule_id: str
    kind: str
    scheduled_for: int
    fire_at: int
    opened_at: int
    status: str
    reason: str | None
    job_id: str | None
    attempt_count: int
    error_message: str | None

    @property
    def slot(self) -> int:
        return self.scheduled_for // SECOND

    @property
    def key(self) -> str:
        return f"{self.schedule_id}:{datetime.fromtimestamp(self.slot, UTC):%Y-%m-%dT%H:%M:%SZ}"


class GapRow(NamedTuple):
    schedule_id: str
    first_slot: int
    last_slot: int
    slots: int
    reason: str


class ArrearsRow(NamedTuple):
    schedule_id: str
    next_slot: int
    last_slot: int
    slots: int


class SpanRow(NamedTuple):
    started_at: int
    alive_at: int


class JobOfRun(NamedTuple):
    id: str
    ledger_run: str | None
    status: str


@dataclass(frozen=True, slots=True)
class Ledger:
    schedules: list[ScheduleRow]
    rows: list[LedgerRow]
    gaps: list[GapRow]
    arrears: list[ArrearsRow]
    coverage: list[SpanRow]
    ended: list[JobOfRun]

    def of(self, schedule_id: str) -> list[LedgerRow]:
        return sorted((row for row in self.rows if row.schedule_id == schedule_id), key=lambda row: row.slot)

    def slots_of(self, schedule_id: str) -> list[int]:
        return [row.slot for row in self.of(schedule_id)]

    def gaps_of(self, schedule_id: str) -> list[GapRow]:
        return sorted(gap for gap in self.gaps if gap.schedule_id == schedule_id)


async def ledger_of(database_url: str) -> Ledger:
    """One consistent look."""
    tables: dict[str, type[tuple[object, ...]]] = {
        "schedules": ScheduleRow,
        "schedule_runs": LedgerRow,
        "schedule_gaps": GapRow,
        "schedule_arrears": ArrearsRow,
        "coverage": SpanRow,
        "finished_jobs": JobOfRun,
    }
    queries = [f"SELECT {', '.join(kind._fields)} FROM {table}" for table, kind in tables.items()]  # type: ignore[attr-defined]
    schedules, rows, gaps, arrears, spans, ended = await looked_up(database_url, queries)
    return Ledger(
        [ScheduleRow(*row) for row in schedules],
        [LedgerRow(*row) for row in rows],
        [GapRow(*row) for row in gaps],
        [ArrearsRow(*row) for row in arrears],
        sorted(SpanRow(*row) for row in spans),
        [JobOfRun(*row) for row in ended],
    )


def in_flight(ledger: Ledger) -> list[LedgerRow]:
    return [row for row in ledger.rows if row.status in ("pending", "running")]


def audited(environment: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """`duly audit`, as a person runs it."""
    command = [sys.executable, "-m", "duly", "audit", *arguments]
    return subprocess.run(command, env=dict(environment), cwd=_ROOT, capture_output=True, text=True, check=False)


async def require_clean_audit(environment: Mapping[str, str]) -> str:
    audit = await asyncio.to_thread(audited, environment)
    assert audit.returncode == 0, audit.stdout + audit.stderr
    return audit.stdout


# What the tables say.


def lost(ledger: Ledger, planned: Mapping[str, Sequence[int]]) -> Iterable[str]:
    """Every slot that was planned has its row or lies in a gap, not in both; and no other slot has."""
    for schedule, slots in planned.items():
        rows = Counter(ledger.slots_of(schedule))
        yield from (f"{schedule} {shown(slot)}: {n} rows" for slot, n in rows.items() if n > 1)
        done = 0
        for gap in ledger.gaps_of(schedule):
            start = bisect_left(slots, gap.first_slot // SECOND)
            end = bisect_right(slots, gap.last_slot // SECOND)
            if end - start != gap.slots or start < done:
                yield f"{gap}: has {end - start} slots, {max(done - start, 0)} of which are in another"
            yield from _without_row(schedule, slots[done:start], rows)
            done = end
        yield from _without_row(schedule, slots[done:], rows)
        yield from (f"{schedule} {shown(slot)}: a row, not planned or in a gap" for slot, n in rows.items() if n)
    yield from (f"{row}: nobody planned it" for row in ledger.rows if row.schedule_id not in planned)


def _without_row(schedule: str, slots: Iterable[int], rows: Counter[int]) -> Iterable[str]:
    """Takes out the rows that it finds."""
    yield from (f"{schedule} {shown(slot)}: lost" for slot in slots if not rows.pop(slot, 0))


def missed(ledger: Ledger) -> Iterable[str]:
    yield from map(str, ledger.gaps)
    yield from map(str, ledger.arrears)


def not_ended(ledger: Ledger) -> Iterable[str]:
    yield from (f"{row}: not ended" for row in in_flight(ledger))


# What the journal says.


def unlike_the_journal(ledger: Ledger, runs: Sequence[Run], killed: Mapping[int, float]) -> Iterable[str]:
    """Each row ended as the journal has it, and nothing ran without a row."""
    entries = defaultdict(list)
    for run in runs:
        entries[run.entered.run].append(run)
    completed: Counter[str | None] = Counter(job.ledger_run for job in ledger.ended if job.status == "COMPLETED")
    completers = {job.ledger_run: job.id for job in ledger.ended if job.status == "COMPLETED"}
    left = {run.entered.job for run in runs if run.left}
    for row in ledger.rows:
        of_row = entries.pop(row.id, [])
        yield from (f"{row}: entered as {e.entered.key}" for e in of_row if e.entered.key != row.key)
        if completed[row.id] != (row.status == "success"):
            yield f"{row}: {completed[row.id]} of its jobs completed"
        match row.status:
            case "success" if completers.get(row.id) not in left:
                yield f"{row}: its last attempt was never left"
            case "skipped" | "cancelled" if row.reason is not None and of_row:
                yield f"{row}: entered {len(of_row)} times all the same"
            case "cancelled" if row.reason is None and completed[row.id]:
                yield f"{row}: it ended by itself"
            case "error" if not _died(of_row, killed):
                yield f"{row}: it was not killed"
            case _:
                pass
    yield from (f"{run}: entered, but it has no row" for run in entries)


def _died(entries: Sequence[Run], killed: Mapping[int, float]) -> bool:
    """One that was never entered was claimed by a process that died before it could enter it."""
    return all(run.entered.pid in killed for run in entries)


def unlike_the_policies(ledger: Ledger) -> Iterable[str]:
    """Only these ends are possible, for these reasons."""
    may: dict[str, set[tuple[str, str | None]]] = {
        "allow": {("success", None)},
        "queue": {("success", None)},
        "skip": {("success", None), ("skipped", "overlap")},
        "queue_one": {("success", None), ("skipped", "coalesced")},
        "replace": {("success", None), ("cancelled", "replaced"), ("cancelled", None)},
    }
    for schedule in ledger.schedules:
        ends = may[schedule.overlap] | ({("error", None)} if schedule.max_attempts == 1 else set())
        yield from (f"{row}: not by {schedule.overlap}" for row in ledger.of(schedule.id) if _end(row) not in ends)


def _end(row: LedgerRow) -> tuple[str, str | None]:
    return row.status, row.reason


def entered_too_often(facts: Facts, runs: Sequence[Run], killed: Mapping[int, float]) -> Iterable[str]:
    """Each slot is entered, and left, once, and once more for each kill that hit it."""
    hits = Counter(line.key for line in checker.hit_by_kills(facts, runs, killed))
    entered = Counter(run.entered.key for run in runs)
    left = Counter(run.entered.key for run in runs if run.left)
    for counts in (entered, left):
        yield from (f"{key}: {n} times, {hits[key]} hits" for key, n in counts.items() if n > 1 + hits[key])


# How long it took.


def downtimes(journal: Sequence[Line], killed: Mapping[int, float]) -> list[Span]:
    """From each kill until the next process was ready."""
    ready = sorted(line.at for line in journal if line.event == "ready")
    return [(kill, min(at for at in ready if at > kill)) for kill in sorted(killed.values())]


def recoveries(facts: Facts, runs: Sequence[Run], killed: Mapping[int, float]) -> dict[str, Span]:
    """For each run that a kill hit and that was tried again: when it was killed, and when it was entered again."""
    entered_at = {run.entered.job: run.entered.at for run in runs}
    retries = {row.retry_of: row.id for row in facts.finished if row.retry_of is not None}
    return {
        hit.job: (killed[hit.pid], entered_at[retries[hit.job]])
        for hit in checker.hit_by_kills(facts, runs, killed)
        if retries.get(hit.job) in entered_at
    }


def slower_than(limit: float, times: Mapping[str, Span], down: Sequence[Span]) -> Iterable[str]:
    """Not counting the time in which there was nobody to do it."""
    for job, (since, until) in times.items():
        alone = sum(max(min(up, until) - max(kill, since), 0) for kill, up in merged(down))
        if until - since - alone > limit:
            yield f"{job}: entered again after {until - since:.2f} s, in {alone:.2f} s of which nobody lived"


def merged(spans: Sequence[Span]) -> list[Span]:
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def shown(slot: int) -> str:
    return f"{datetime.fromtimestamp(slot, UTC):%H:%M:%S}"
