"""Jobs that cannot run do not slow down those that can."""

import asyncio
import contextlib
import statistics
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import apsw
import asyncpg
import pytest

from duly.bootstrap import Queue
from duly.domain.ids import Lane, PoolName, SessionId, Token
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import COMPLETED, NewJob
from duly.domain.sessions import Report, Wanted
from tests import postgres_server
from tests.acceptance import checker
from tests.acceptance.journal import boottime
from tests.acceptance.processes import opened

pytestmark = pytest.mark.serial

WIDE, FULL, PAUSED, RESOURCE = PoolName("wide"), PoolName("full"), PoolName("paused"), PoolName("resource")
POOLS = {WIDE: 1_000, FULL: 0, PAUSED: 1_000, RESOURCE: 0}
STUCK = {("wide", "waiting"): 30_000, ("wide", "scheduled"): 20_000, ("wide", "parked"): 10_000,
         ("full", "ready"): 20_000, ("paused", "ready"): 20_000}  # fmt: skip
ROUNDS, EXCHANGES, AT_ONCE = 12, 20, 20


class Claimer:
    """Claims and ends jobs of one queue, as a worker does."""

    def __init__(self, queue: Queue, session: SessionId) -> None:
        self._queue = queue
        self._session = session
        self._token = 0

    async def rate(self) -> float:
        """Claims per second over one round, in which every exchange finds as many jobs as it wants."""
        await self._queue.jobs.put_many([NewJob(kind="work", pool=WIDE) for _ in range(EXCHANGES * AT_ONCE)])
        wanted = {pool: Wanted(AT_ONCE) for pool in (WIDE, FULL, PAUSED)}
        reports: list[Report] = []
        began = boottime()
        for _ in range(EXCHANGES):
            self._token += 1
            exchange = await self._queue.sessions.exchange(
                self._session, token=Token(self._token), reports=reports, wanted=wanted
            )
            assert len(exchange.started) == AT_ONCE
            reports = [Report(job, COMPLETED) for job in exchange.started]
        rate = EXCHANGES * AT_ONCE / (boottime() - began)
        await self._queue.sessions.exchange(self._session, token=Token(0), reports=reports, wanted={})
        return rate


@contextlib.asynccontextmanager
async def _claimer(database_url: str) -> AsyncIterator[Claimer]:
    async with opened(database_url, POOLS) as queue:
        await queue.pools.pause(PAUSED)
        session = await queue.sessions.open(name="claimer", capacity=3 * AT_ONCE)
        yield Claimer(queue, session.id)


@pytest.mark.req("INV-004")
@pytest.mark.req("GRAPH-09")
def test_a_hundred_thousand_stuck_jobs_in_front_do_not_halve_the_rate_of_claims(
    database_url: str, empty_database_url: str
) -> None:
    async def measure() -> list[tuple[float, float]]:
        async with _claimer(empty_database_url) as free, _claimer(database_url) as behind:
            await _fill(database_url)
            for warming in (free, behind):
                await warming.rate()
            return [(await free.rate(), await behind.rate()) for _ in range(ROUNDS)]

    rates = asyncio.run(measure())

    free, behind = (statistics.median(column) for column in zip(*rates, strict=True))
    print(f"{free:.0f} claims/s alone, {behind:.0f} claims/s behind 100,000 stuck jobs: ratio {free / behind:.2f}")
    facts = asyncio.run(checker.facts_of(database_url))
    stuck = Counter((job.pool, job.state) for job in facts.live)
    assert {kind: stuck[kind] for kind in STUCK} == STUCK
    assert free / behind < 2


async def _fill(database_url: str) -> None:
    """One job of each stuck kind is put; SQL makes as many of it as are wanted, all before whatever comes later."""
    async with opened(database_url, POOLS) as queue:
        await queue.pools.pause(PAUSED)
        tomorrow = Instant(queue.storage.clock.now() + 86_400 * SECOND)
        head = NewJob(kind="work", pool=PAUSED, lane=Lane("stuck"), priority=100)
        news = {
            ("wide", "waiting"): NewJob(kind="work", pool=WIDE, lane=Lane("stuck"), priority=100),
            ("wide", "scheduled"): NewJob(kind="work", pool=WIDE, run_at=tomorrow, priority=100),
            ("wide", "parked"): NewJob(kind="work", pool=WIDE, resources=(RESOURCE,), priority=100),
            ("full", "ready"): NewJob(kind="work", pool=FULL, priority=100),
        }
        (first,) = await queue.jobs.put_many([head])
        puts = await queue.jobs.put_many(list(news.values()))
        # A claim finds that the resource is full, and parks the job.
        session = await queue.sessions.open(name="parker")
        assert not (await queue.sessions.exchange(session.id, token=Token(1), wanted={WIDE: Wanted(1)})).started
        await queue.sessions.close(session.id)
    copied = {kind: put.job_id for kind, put in zip(news, puts, strict=True)} | {("paused", "ready"): first.job_id}
    await _multiply(database_url, [(job, STUCK[kind] - 1) for kind, job in copied.items()])


_COLUMNS = (
    "kind, payload, pool, resources, priority, rank, position, run_at, created_at, state, parked_on, attempt,"
    " max_attempts, backoff_ms, backoff_cap_ms, timeout_ms"
)


async def _multiply(database_url: str, copies: list[tuple[str, int]]) -> None:
    """Only a waiting job keeps its lane: of a head there is but one."""
    insert = (
        f"INSERT INTO jobs (id, chain, lane, {_COLUMNS}) SELECT id || '-' || n, id || '-' || n,"
        f" CASE WHEN state = 'waiting' THEN lane END, {_COLUMNS} FROM jobs, {{series}} WHERE id = {{id}}"
    )
    if database_url.startswith("postgresql://"):
        connection = await asyncpg.connect(database_url)
        try:
            for job, count in copies:
                series = f"generate_series(1, {count}) AS n"
                await connection.execute(insert.format(series=series, id="$1"), job)
            await connection.execute("ANALYZE jobs")
        finally:
            await connection.close()
        return
    file = apsw.Connection(database_url)
    try:
        file.set_busy_timeout(10_000)
        for job, count in copies:
            numbers = f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) "
            file.execute(numbers + insert.format(series="s", id="?"), (job,))
    finally:
        file.close()


@pytest.fixture
def empty_database_url(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if store == "sqlite":
        yield str(tmp_path / "empty.db")
        return
    with postgres_server.fresh_database(request.getfixturevalue("postgres_server_url")) as url:
        yield url
