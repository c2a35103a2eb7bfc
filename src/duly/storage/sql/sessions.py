"""Sessions in SQL: leases, heartbeats, rescue."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from duly.domain.ids import JobId, PoolName, SessionId, Token
from duly.domain.instants import Instant, Micros
from duly.domain.jobs import Ending, Job, JobState, JobStatus
from duly.domain.sessions import (
    Beat,
    ClaimedJob,
    Exchange,
    OverCapacity,
    Report,
    Rescue,
    Session,
    SessionLost,
    Wanted,
)
from duly.storage.errors import ConstraintViolated
from duly.storage.executor import Executor
from duly.storage.sql.claims import ClaimOrder, Claims
from duly.storage.sql.rows import job_from_row, resources_text
from duly.storage.sql.tickets import SqlTickets

WORKER_LOST = Ending(status=JobStatus.FAILED, error="worker lost: its session ended while this job was running")


class SqlSessions:
    __slots__ = ("_claims", "_tickets", "_x")

    def __init__(self, executor: Executor, claims: Claims, tickets: SqlTickets) -> None:
        self._x = executor
        self._claims = claims
        self._tickets = tickets

    async def open(self, session: Session, *, era: str, lease_now: Micros, now: Instant) -> None:
        await self._x.fetch(
            "open_session",
            id=session.id,
            name=session.name,
            capacity=session.capacity,
            lease=session.lease,
            era=era,
            lease_now=lease_now,
            now=now,
            kinds=None if session.kinds is None else json.dumps(session.kinds),
        )

    async def live_kinds(self, *, era: str, lease_now: Micros) -> frozenset[str] | None:
        rows = await self._x.fetch("live_kinds", era=era, lease_now=lease_now)
        if any(kinds is None for (kinds,) in rows):
            return None
        return frozenset(kind for (kinds,) in rows for kind in json.loads(kinds))

    async def unpark(self) -> None:
        await self._claims.unpark_where_there_is_room()

    async def beat(self, session: SessionId, *, era: str, lease_now: Micros, now: Instant) -> Beat:
        if not await self._x.fetch("renew_session", id=session, lease_now=lease_now, now=now):
            raise SessionLost(session)
        cancelled = await self._x.fetch("cancelled_in_session", session=session)
        pools = await self._x.fetch("pools_with_work")
        due = await self._x.fetch("next_due_at")
        expiry = await self._x.fetch("next_expiry", era=era)
        return Beat(
            cancelled=dict(cancelled),
            pools_with_work=frozenset(name for (name,) in pools),
            next_due_at=due[0][0],
            next_expiry=expiry[0][0],
        )

    async def claim(
        self, session: SessionId, wanted: Mapping[PoolName, int], *, token: Token, now: Instant
    ) -> tuple[Sequence[ClaimedJob], Collection[PoolName]]:
        order = ClaimOrder(session, token, now)
        with _within_capacity_of(session):
            return await self._claims.claim_once(order, wanted), {PoolName(name) for name in order.by_share}

    async def exchange(
        self,
        session: SessionId,
        reports: Sequence[Report],
        starting: Sequence[ClaimedJob],
        wanted: Mapping[PoolName, Wanted],
        *,
        token: Token,
        now: Instant,
        again: bool = False,
    ) -> Exchange:
        order = ClaimOrder(session, token, now)
        with _within_capacity_of(session):
            return await self._claims.exchange(order, reports, starting, wanted, again=again)

    async def give_back(self, session: SessionId, jobs: Sequence[ClaimedJob], *, now: Instant) -> None:
        await self._claims.give_back(session, jobs, now)

    async def suspend(self, session: SessionId, job: ClaimedJob, *, until: Instant, now: Instant) -> None:
        await self._claims.suspend(session, job, until, now)

    async def revoke(self, job_id: JobId, *, reason: str, now: Instant) -> bool:
        for row in await self._x.fetch("job_by_id_locked", id=job_id):
            job = job_from_row(row)
            if job.session is None:
                return False
            if not _has_started(job):
                await self._claims.give_back(job.session, [_claimed(job)], now)
                return False
            ending = Ending(status=JobStatus.CANCELLED, error=reason)
            ended, _ = await self._claims.finish(job.session, [Report(_claimed(job), ending)], now)
            await self._x.each("void_claims", [(job_id,) for job_id in ended])
            await self._x.fetch("count_ended", id=job.session, ended=len(ended))
            return True
        return False

    async def expired(self, *, era: str, lease_now: Micros, most: int) -> list[SessionId]:
        rows = await self._x.fetch("expired_sessions", era=era, lease_now=lease_now, most=most)
        orphans = await self._x.fetch("jobs_of_no_session")
        return [SessionId(session) for (session,) in (*rows, *orphans)]

    async def rescue(self, session: SessionId, retries: Sequence[tuple[JobId, float]], *, now: Instant) -> Rescue:
        rows = await self._x.fetch("jobs_of_session", session=session, most=len(retries))
        jobs = [job_from_row(row) for row in rows]
        returned = await self._claims.give_back(session, [_claimed(job) for job in jobs if not _has_started(job)], now)
        reports = [
            Report(_claimed(job), WORKER_LOST, retry_id=retry_id, fraction=fraction)
            for job, (retry_id, fraction) in zip(jobs, retries, strict=False)
            if _has_started(job)
        ]
        failed, _ = await self._claims.finish(session, reports, now)
        await self._x.each("void_claims", [(job_id,) for job_id in failed])
        if failed:
            # The session may wake up before its last batch: then it has these executors back.
            await self._x.fetch("count_ended", id=session, ended=len(failed))
        ended = len(jobs) < len(retries)
        tickets = await self._end(session) if ended else 0
        return Rescue(session=session, returned=returned, failed=len(failed), tickets=tickets, ended=ended)

    async def _end(self, session: SessionId) -> int:
        """Its tickets go with it."""
        tickets = await self._tickets.release_all_of(session)
        await self._x.fetch("close_session", id=session)
        return tickets

    async def recount(self) -> None:
        # Locked first, in a statement of its own: then no claim or release is half counted.
        await self._x.fetch("lock_all_pools")
        await self._x.fetch("recount_pools")


@contextmanager
def _within_capacity_of(session: SessionId) -> Iterator[None]:
    """The schema counts what a session runs and is the judge of it: here its verdict gets the domain's name."""
    try:
        yield
    except ConstraintViolated as refusal:
        if refusal.name == "sessions_within_capacity":
            raise OverCapacity(session) from refusal
        raise


def _has_started(job: Job) -> bool:
    return job.state is JobState.RUNNING


def _claimed(job: Job) -> ClaimedJob:
    assert job.token is not None  # noqa: S101 - the schema pairs session and token
    return ClaimedJob(
        id=job.id,
        kind=job.kind,
        payload=job.payload,
        key=job.key,
        lane=job.lane,
        pool=job.pool,
        resources=resources_text(job.resources),
        attempt=job.attempt,
        max_attempts=job.retry.max_attempts,
        run_at=job.run_at,
        created_at=job.created_at,
        timeout_ms=job.timeout_ms,
        chain=job.chain,
        token=job.token,
        state=job.state,
        rank=job.rank,
        position=job.position,
        ledger_run=job.ledger_run,
    )
