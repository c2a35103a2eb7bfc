"""What must hold after every commit, and what must have become of everything once the world has healed."""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import apsw


class LawBroken(AssertionError):
    pass


@dataclass(slots=True)
class Entry:
    """One entry into a handler, as the handler itself saw it."""

    process: str
    job: str
    chain: str
    lane: str | None
    pool: str
    token: int
    session_killed: bool = False
    entered_at: int = 0
    left_at: int | None = None


@dataclass(slots=True)
class Journal:
    """Written by callers and handlers, not by the queue: it decides what was promised and what ran."""

    promised: dict[str, int] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    kills: int = 0


def require(condition: object, law: str) -> None:
    if not condition:
        raise LawBroken(law)


def check_every_commit(database: apsw.Connection, *, limits: dict[str, int]) -> None:
    for (lane,) in _rows(
        database,
        "SELECT lane FROM jobs WHERE lane IS NOT NULL AND state NOT IN ('scheduled', 'waiting')"
        " GROUP BY lane HAVING count(*) > 1",
    ):
        raise LawBroken(f"lane {lane} has two heads")
    for (lane,) in _rows(
        database,
        "SELECT DISTINCT lane FROM jobs w WHERE state = 'waiting' AND NOT EXISTS"
        " (SELECT 1 FROM jobs h WHERE h.lane = w.lane AND h.state NOT IN ('scheduled', 'waiting'))",
    ):
        raise LawBroken(f"lane {lane} is dead: jobs wait behind nobody")
    _check_pools(database, limits)
    for (job,) in _rows(database, "SELECT id FROM jobs WHERE id IN (SELECT id FROM finished_jobs)"):
        raise LawBroken(f"job {job} is live and ended")
    for (job,) in _rows(
        database,
        "SELECT id FROM arrivals WHERE id IN (SELECT id FROM jobs UNION ALL SELECT id FROM finished_jobs)",
    ):
        raise LawBroken(f"job {job} has arrived twice")
    for (session,) in _rows(
        database,
        "SELECT id FROM sessions s"
        " WHERE busy <> (SELECT count(*) FROM jobs WHERE session = s.id AND state = 'running')",
    ):
        raise LawBroken(f"session {session} has lost count of its executors")


def _check_pools(database: apsw.Connection, limits: dict[str, int]) -> None:
    held: dict[str, int] = defaultdict(int)
    for pool, state, resources in _rows(database, "SELECT pool, state, resources FROM jobs WHERE session IS NOT NULL"):
        held[pool] += 1
        if state == "running":
            for name in (resources or "").split(","):
                held[name] += 1
    for (pool,) in _rows(database, "SELECT pool FROM tickets WHERE state = 'held'"):
        held[pool] += 1
    for name, used in _rows(database, "SELECT name, used FROM pools"):
        require(held[name] <= limits[name], f"pool {name} holds {held[name]} of {limits[name]}")
        require(used == held[name], f"pool {name} counts {used} and holds {held[name]}")


def check_in_the_end(database: apsw.Connection, journal: Journal) -> None:
    """Nothing lost, nothing doubled, everything back where it belongs."""
    require(
        not _rows(database, "SELECT id FROM jobs UNION ALL SELECT id FROM arrivals"),
        f"still live: {_rows(database, 'SELECT id, state, lane, pool FROM jobs')}",
    )
    require(not _rows(database, "SELECT 1 FROM pools WHERE used <> 0 OR tickets <> 0"), "a pool kept a place")
    ended = {
        row[0]: row for row in _rows(database, "SELECT id, chain, status, attempt, session, token FROM finished_jobs")
    }
    for job in journal.promised:
        require(job in ended, f"job {job} was promised and is lost")
    attempts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for _, chain, status, attempt, _, _ in ended.values():
        attempts[chain].append((attempt, status))
    for chain, tries in attempts.items():
        _check_chain(chain, sorted(tries))
    _check_entries(journal, ended)


def _check_chain(chain: str, tries: list[tuple[int, str]]) -> None:
    numbers = [attempt for attempt, _ in tries]
    require(numbers == list(range(1, len(tries) + 1)), f"chain {chain} has attempts {numbers}")
    require(all(status == "FAILED" for _, status in tries[:-1]), f"chain {chain} was retried after {tries}")


def _check_entries(journal: Journal, ended: dict[str, Any]) -> None:
    """A job is entered at most once: what ran is retried as another job, what did not run was not entered."""
    entries: dict[str, list[Entry]] = defaultdict(list)
    for entry in journal.entries:
        entries[entry.job].append(entry)
    for job, seen in entries.items():
        require(len(seen) == 1, f"job {job} was entered {len(seen)} times")
        row = ended[job]
        if row[2] == "COMPLETED":
            winners = [e for e in seen if e.token == row[5] and e.left_at is not None]
            require(len(winners) == 1, f"job {job} is recorded as done by a run that did not do it")
    _check_lanes(journal, ended)


def _check_lanes(journal: Journal, ended: dict[str, Any]) -> None:
    """Runs that were recorded never overlapped within a lane."""
    runs: dict[str, list[Entry]] = defaultdict(list)
    for entry in journal.entries:
        row = ended[entry.job]
        if entry.lane and entry.left_at is not None and row[5] == entry.token and row[2] == "COMPLETED":
            runs[entry.lane].append(entry)
    for lane, seen in runs.items():
        seen.sort(key=lambda entry: entry.entered_at)
        for earlier, later in pairwise(seen):
            require(
                earlier.left_at is not None and earlier.left_at <= later.entered_at,
                f"lane {lane}: {earlier.job} and {later.job} ran at once",
            )


def _rows(database: apsw.Connection, sql: str) -> list[tuple[Any, ...]]:
    return list(database.execute(sql))
