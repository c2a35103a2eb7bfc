"""The laws of the queue, checked from outside: plain SQL on the tables and the journals, none of Duly's own code.

Each law answers its violations, so that a failure names all of them; `require` raises when there are any.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw
import asyncpg

from tests.acceptance.journal import Line, boottime_of


class Live(NamedTuple):
    id: str
    chain: str
    attempt: int
    state: str
    pool: str
    lane: str | None
    session: str | None


class Finished(NamedTuple):
    id: str
    chain: str
    attempt: int
    retry_of: str | None
    status: str
    error: str | None
    pool: str
    lane: str | None
    session: str | None
    token: int | None
    started_at: int | None


class PoolRow(NamedTuple):
    name: str
    slots: int
    used: int
    tickets: int
    parked: int


class SessionRow(NamedTuple):
    id: str
    name: str
    busy: int
    seen_at: int


@dataclass(frozen=True, slots=True)
class Facts:
    live: list[Live]
    finished: list[Finished]
    pools: list[PoolRow]
    sessions: list[SessionRow]


@dataclass(frozen=True, slots=True)
class Run:
    """A handler's run as the journal has it. `end` is None while nothing tells that it has ended.

    `left` says that the handler came to its end by itself.
    """

    entered: Line
    end: float | None
    left: bool


async def facts_of(database_url: str) -> Facts:
    """One consistent look at all tables."""
    queries = [
        f"SELECT {', '.join(kind._fields)} FROM {table}"
        for table, kind in (("jobs", Live), ("finished_jobs", Finished), ("pools", PoolRow), ("sessions", SessionRow))
    ]
    live, finished, pools, sessions = await looked_up(database_url, queries)
    return Facts(
        [Live(*row) for row in live],
        [Finished(*row) for row in finished],
        [PoolRow(*row) for row in pools],
        [SessionRow(*row) for row in sessions],
    )


async def looked_up(database_url: str, queries: Sequence[str]) -> list[list[Any]]:
    if not database_url.startswith("postgresql://"):
        return _looked_up_in_file(database_url, queries)
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            return [list(await connection.fetch(query)) for query in queries]
    finally:
        await connection.close()


def _looked_up_in_file(path: str, queries: Sequence[str]) -> list[list[Any]]:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(10_000)
        connection.execute("BEGIN")
        return [connection.execute(query).fetchall() for query in queries]
    finally:
        connection.close()


def require(*laws: Iterable[str]) -> None:
    violations = [violation for law in laws for violation in law]
    assert not violations, f"{len(violations)} violations:\n" + "\n".join(violations[:20])


def runs_of(journal: Iterable[Line], killed: Mapping[int, float] | None = None) -> list[Run]:
    """A run ends when its handler says so, or at the latest when its process was killed."""
    lines = list(journal)
    left = {(line.job, line.pid) for line in lines if line.event == "leave"}
    ends = {(line.job, line.pid): line.at for line in lines if line.event in ("leave", "cancelled")}
    return [
        Run(line, ends.get((line.job, line.pid), (killed or {}).get(line.pid)), (line.job, line.pid) in left)
        for line in lines
        if line.event == "enter"
    ]


# What the tables say.


def lost_or_doubled(facts: Facts, put: Collection[str]) -> Iterable[str]:
    """Every acknowledged put has one chain of attempts, which ends once, completed; nothing else was made up."""
    chains: dict[str, list[Finished]] = defaultdict(list)
    for row in facts.finished:
        chains[row.chain].append(row)
    for chain in put:
        rows = sorted(chains.pop(chain, []), key=lambda row: row.attempt)
        if [row.attempt for row in rows] != list(range(1, len(rows) + 1)) or not rows:
            yield f"{chain}: attempts {[row.attempt for row in rows]}"
        elif [row.status for row in rows] != ["FAILED"] * (len(rows) - 1) + ["COMPLETED"]:
            yield f"{chain}: {[(row.status, row.error) for row in rows]}"
        elif [row.retry_of for row in rows] != [None, *(row.id for row in rows[:-1])]:
            yield f"{chain}: its attempts do not follow each other"
    yield from (f"{chain}: nobody put it" for chain in chains)


def left_behind(facts: Facts) -> Iterable[str]:
    """After the drain, and after every worker has gone, nothing lives and nothing is counted as used."""
    yield from (f"live: {job}" for job in facts.live)
    yield from (f"in use: {pool}" for pool in facts.pools if pool.used or pool.tickets or pool.parked)
    yield from (f"session: {session}" for session in facts.sessions)


# What the journal says.


def entered_twice(runs: Sequence[Run]) -> Iterable[str]:
    """An attempt is claimed by one worker, once: a further try is an attempt of its own."""
    counts = Counter(run.entered.job for run in runs)
    yield from (f"{job}: entered {count} times" for job, count in counts.items() if count > 1)


def recorded_without_run(facts: Facts, runs: Sequence[Run]) -> Iterable[str]:
    """What is recorded as completed was entered and left; what was entered is known to the tables."""
    left = {run.entered.job for run in runs if run.end is not None}
    yield from (
        f"{row.id}: completed, not run" for row in facts.finished if row.status == "COMPLETED" and row.id not in left
    )
    known = {row.id for row in facts.finished} | {job.id for job in facts.live}
    yield from (f"{run.entered.job}: run, not known" for run in runs if run.entered.job not in known)


def unexplained_failures(facts: Facts, runs: Sequence[Run], killed: Mapping[int, float]) -> Iterable[str]:
    """A run that was entered fails only because its process was killed: no live worker loses its work."""
    pids = {run.entered.job: run.entered.pid for run in runs}
    for row in facts.finished:
        if row.status == "FAILED" and row.id in pids and pids[row.id] not in killed:
            yield f"{row.id}: {row.error!r}, but {pids[row.id]} was not killed"


def entered_too_often(facts: Facts, runs: Sequence[Run], killed: Mapping[int, float]) -> Iterable[str]:
    """A chain is entered once, and once more for each kill that hit it."""
    hits = Counter(line.chain for line in hit_by_kills(facts, runs, killed))
    counts = Counter(run.entered.chain for run in runs)
    yield from (f"{chain}: {n} entries, {hits[chain]} hits" for chain, n in counts.items() if n > 1 + hits[chain])


def hit_by_kills(facts: Facts, runs: Sequence[Run], killed: Mapping[int, float]) -> list[Line]:
    """Runs whose process was killed before their end was recorded, whether or not the handler had left."""
    failed = {row.id for row in facts.finished if row.status == "FAILED"}
    return [run.entered for run in runs if run.entered.pid in killed and run.entered.job in failed]


def recoveries(facts: Facts, runs: Sequence[Run], killed: Mapping[int, float]) -> dict[str, float]:
    """For each run that a kill hit, the seconds from the kill until its next attempt was entered.

    An attempt that was itself killed between claim and entry counts from its claim, which only the tables know.
    """
    entered_at = {run.entered.job: run.entered.at for run in runs}
    retries = {row.retry_of: row for row in facts.finished if row.retry_of is not None}
    times = {}
    for hit in hit_by_kills(facts, runs, killed):
        retry = retries[hit.job]
        at = entered_at.get(retry.id) or boottime_of((retry.started_at or 0) / 1_000_000)
        times[hit.job] = at - killed[hit.pid]
    return times


def figures(facts: Facts, runs: Sequence[Run], killed: Mapping[int, float], put: Collection[str]) -> str:
    times = recoveries(facts, runs, killed)
    entered = {run.entered.job for run in runs}
    most = max(Counter(run.entered.chain for run in runs).values(), default=0)
    unentered = sum(row.status == "FAILED" and row.id not in entered for row in facts.finished)
    return (
        f"{len(killed)} kills, {len(put)} jobs, {len(runs)} entries, {len(times)} runs hit,"
        f" {unentered} claims that died before entry, at most {most} entries of one job,"
        f" worst recovery {max(times.values(), default=0):.2f} s"
    )


def slower_than(limit: float, times: Mapping[str, float]) -> Iterable[str]:
    """Holds for jobs whose pool has room: in a full one a retry waits for its turn, as everybody does."""
    yield from (f"{job}: entered again after {time:.2f} s" for job, time in times.items() if time > limit)


def overlapping_in_lanes(runs: Sequence[Run]) -> Iterable[str]:
    lanes = defaultdict(list)
    for run in runs:
        if run.entered.lane is not None:
            lanes[run.entered.lane].append(run)
    for lane, of_lane in lanes.items():
        most = most_at_once(of_lane)
        if most > 1:
            yield f"lane {lane}: {most} runs at once"


def over_limit(runs: Sequence[Run], pool: str, limit: int) -> Iterable[str]:
    most = most_at_once([run for run in runs if run.entered.pool == pool])
    if most > limit:
        yield f"pool {pool}: {most} runs at once, its limit is {limit}"


def most_at_once(runs: Iterable[Run]) -> int:
    changes = [(run.entered.at, 1) for run in runs]
    changes += [(run.end, -1) for run in runs if run.end is not None]
    at_once = most = 0
    for _, change in sorted(changes):
        at_once += change
        most = max(most, at_once)
    return most


def out_of_order(runs: Sequence[Run], put: Sequence[str]) -> Iterable[str]:
    """Chains were first entered in the order in which they were put."""
    entered = list(dict.fromkeys(run.entered.chain for run in sorted(runs, key=lambda run: run.entered.at)))
    for place, (is_, should_be) in enumerate(zip(entered, put, strict=False)):
        if is_ != should_be:
            yield f"place {place}: {is_} instead of {should_be}"
