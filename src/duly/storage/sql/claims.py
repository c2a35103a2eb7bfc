"""Claims in SQL: the exchange that ends the last runs and hands out the next jobs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import JobId, PoolName, SessionId, Token
from duly.domain.instants import Instant
from duly.domain.jobs import Job, JobState, JobStatus
from duly.domain.sessions import ClaimedJob, Exchange, Report, Wanted
from duly.storage.executor import Executor, Row
from duly.storage.sql.lanes import Lanes
from duly.storage.sql.memberships import Memberships
from duly.storage.sql.reviews import withdraw_with
from duly.storage.sql.rows import job_from_row, job_row, pool_from_row, resource_names
from duly.storage.sql.topics import DUE, pool_topic

_MOST_ROUNDS = 10
_SUCCESS = (JobStatus.COMPLETED.value, None, None, None, None)
_NOT_RETRYABLE = 0


class HotPath(Protocol):
    """The two steps whose shape differs: Postgres takes one statement where SQLite takes several cheap ones."""

    async def lock_pools(self, x: Executor, names: Iterable[str]) -> None: ...

    async def finish(self, x: Executor, session: SessionId, reports: Sequence[Row], now: Instant) -> Sequence[Row]:
        """Ends runs whose claims are still good; answers (id, lane, pool, resources, ledger_run, member) of each."""

    async def claim(self, x: Executor, order: "ClaimOrder", wanted: Sequence[tuple[str, int]]) -> Sequence[ClaimedJob]:
        """Takes the next jobs, counts them in pools and session, or raises SessionLost.

        Of pools with a limit per owner it takes none, and names them in the order: those are `claim_by_share`d.
        """

    async def claim_by_share(
        self, x: Executor, order: "ClaimOrder", wanted: Sequence[tuple[str, int]]
    ) -> Sequence[ClaimedJob]:
        """Takes the next jobs of pools with a limit per owner, in a statement after the one that locks them."""


@dataclass(slots=True)
class ClaimOrder:
    """Under whose name jobs are claimed, to be started or held, and how many executors have just become free."""

    session: SessionId
    token: Token
    now: Instant
    ended: int = 0
    state: JobState = JobState.RUNNING
    by_share: set[str] = field(default_factory=set)


class Claims:
    __slots__ = ("_hot", "_lanes", "_x")

    def __init__(self, executor: Executor, hot: HotPath) -> None:
        self._x = executor
        self._hot = hot
        self._lanes = Lanes(executor)

    async def claim_once(self, order: ClaimOrder, wanted: Mapping[PoolName, int]) -> list[ClaimedJob]:
        """In one statement, unless the answer to it was lost: then what it claimed is found, not claimed anew."""
        if self._x.rerun and (earlier := await self._claimed_before(order)):
            return earlier
        claimed = await self._hot.claim(self._x, order, [(pool, count) for pool, count in wanted.items() if count])
        return sorted(claimed, key=_place)

    async def claim(self, order: ClaimOrder, wanted: Mapping[PoolName, int]) -> list[ClaimedJob]:
        """A job that needs extra resources is held, not started."""
        order.by_share = set()
        asked = [(pool, count) for pool, count in wanted.items() if count]
        claimed = [*await self._hot.claim(self._x, order, asked)]
        if order.by_share:
            shared = [(pool, count) for pool, count in asked if pool in order.by_share]
            claimed += await self._hot.claim_by_share(self._x, order, shared)
        return sorted(claimed, key=_place)

    async def exchange(
        self,
        order: ClaimOrder,
        reports: Sequence[Report],
        starting: Sequence[ClaimedJob],
        wanted: Mapping[PoolName, Wanted],
        *,
        again: bool,
    ) -> Exchange:
        reports = _first_of_each_job(reports)
        await self._lock_pools(reports, starting, wanted)
        ended, stale = await self.finish(order.session, reports, order.now)
        order.ended = len(ended)
        is_repeated = again or self._x.rerun
        earlier = await self._claimed_before(order) if is_repeated else []
        started = [job for job in earlier if job.state == JobState.RUNNING]
        going = {job.id for job in starting}
        held = [job for job in earlier if job.state == JobState.CLAIMED and job.id not in going]
        if starting and is_repeated:
            begun = await self._started_before(order, starting)
            started += [job for job in begun if job not in started]
            starting = [job for job in starting if job.id not in {done.id for done in started}]
        if starting:
            # Before they count: what ended has freed their executors.
            await self._rest(order)
            started += await self._start(order, starting)
        if earlier:
            await self._rest(order)
        else:
            await self._claim_in_turn(order, wanted, started, held)
        return Exchange(started=started, held=held, stale=stale)

    async def finish(
        self, session: SessionId, reports: Sequence[Report], now: Instant
    ) -> tuple[set[JobId], list[JobId]]:
        """Ends runs and starts what follows from that; answers which ended, and whose claim was lost."""
        if not reports:
            return set(), []
        retries = await self._next_attempts(session, reports, now)
        rows = [
            (
                r.job.id,
                r.job.token,
                r.ending.status.value,
                r.ending.error,
                r.ending.exit_code,
                r.ending.result,
                None if r.ending.retryable else _NOT_RETRYABLE,
            )
            for r in reports
        ]
        done = await self._hot.finish(self._x, session, rows, now)
        ids = {row[0] for row in done}
        await self._note_executions(report for report in reports if report.job.id in ids)
        # By place, ledger_run and member: to take each row apart would cost more than all the rest here.
        await self._end_runs(row[0] for row in done if row[4] and row[0] not in retries)
        await self._follow(done, [retry for job_id, retry in retries.items() if job_id in ids])
        if ended := [row[0] for row in done if row[5] and row[0] not in retries]:
            await Memberships(self._x).end(ended, now)
        return ids, await self._stale(session, [r for r in reports if r.job.id not in ids])

    async def _note_executions(self, reports: Iterable[Report]) -> None:
        """Before their runs end: whoever is told of that is told which execution it was."""
        for job, ending, *_ in reports:
            if job.ledger_run is not None and ending.executed is not None:
                await self._x.fetch("note_execution", id=job.ledger_run, **ending.executed._asdict())

    async def _end_runs(self, jobs: Iterable[JobId]) -> None:
        """Rows of the ledger whose chains have ended, each with its last job."""
        if ended := [(job_id,) for job_id in jobs]:
            await self._x.each("end_runs", ended)

    async def _next_attempts(self, session: SessionId, reports: Sequence[Report], now: Instant) -> dict[JobId, Job]:
        failed = {r.job.id: r for r in reports if r.retry_id and r.ending.status is JobStatus.FAILED}
        rows = await self._x.each("jobs_held", [(r.job.id, r.job.token) for r in failed.values()], session=session)
        attempts: dict[JobId, Job] = {}
        for job in map(job_from_row, rows):
            report = failed[job.id]
            if report.retry_id is None or job.cancel_reason is not None or not report.ending.retryable:
                continue
            retry = job.next_attempt(new_id=report.retry_id, now=now, fraction=report.fraction)
            if retry is not None:
                attempts[job.id] = retry
        return attempts

    async def _follow(self, done: Sequence[Row], retries: Sequence[Job]) -> None:
        """Retries take the lanes of their chains; other lanes get their next head; places become free."""
        if retries:
            added = await self._x.each("insert_jobs", [job_row(job, _retry_state(job)) for job in retries])
            if len(added) != len(retries):
                raise RuntimeError("a retry could not take its chain's place")
            for job in retries:
                self._x.wake(pool_topic(job.pool) if _retry_state(job) is JobState.READY else DUE)
            await self._lanes.step_back([job.lane for job in retries if _retry_state(job) is JobState.READY])
        lanes = {row[1] for row in done if row[1]} - {job.lane for job in retries}
        await self._lanes.leave(lanes)
        await self.release(Counter(name for _, _, pool, more, _, _ in done for name in (pool, *resource_names(more))))

    async def release(self, freed: Counter[PoolName]) -> None:
        """Gives places back, to parked jobs and to whoever waits for a full pool."""
        rows = await self._x.each("release_slots", sorted(freed.items()))
        for name, was_full, _ in rows:
            if was_full:
                self._x.wake(pool_topic(name))
        await self.unpark([name for name, _, has_parked in rows if has_parked])

    async def unpark_where_there_is_room(self) -> None:
        """Whoever was meant to take a freed place may be gone, or stand in a pool that runs nothing."""
        names = [name for (name,) in await self._x.fetch("resources_with_room")]
        if names:
            await self._hot.lock_pools(self._x, names)
            await self.unpark(names)

    async def unpark(self, pools: Sequence[PoolName]) -> None:
        names = [(name,) for name in pools]
        for (pool,) in await self._x.each("unpark", names):
            self._x.wake(pool_topic(pool))
        await self._x.each("count_parked", names)

    async def _stale(self, session: SessionId, reports: Sequence[Report]) -> list[JobId]:
        """Reports of lost claims; those that an earlier run of this exchange wrote are not lost."""
        rows = await self._x.each("already_finished", [(r.job.id, r.job.token) for r in reports], session=session)
        written = {row[0] for row in rows}
        return [r.job.id for r in reports if r.job.id not in written]

    async def _started_before(self, order: ClaimOrder, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        rows = await self._x.each("started_before", [(job.id, job.token) for job in jobs], session=order.session)
        return sorted(map(ClaimedJob._make, rows), key=_place)

    async def _claimed_before(self, order: ClaimOrder) -> list[ClaimedJob]:
        # The lost run may still be at work on the server; it holds its session's row until it is done.
        await self._x.fetch("lock_session", id=order.session)
        rows = await self._x.fetch("claimed_before", session=order.session, token=order.token)
        return sorted(map(ClaimedJob._make, rows), key=_place)

    async def _claim_in_turn(
        self,
        order: ClaimOrder,
        wanted: Mapping[PoolName, Wanted],
        started: list[ClaimedJob],
        held: list[ClaimedJob],
    ) -> None:
        """Fills the free executors, then the prefetch; jobs that had to be parked leave their turn to the next."""
        missing = {pool: want.start for pool, want in wanted.items() if want.start}
        for _ in range(_MOST_ROUNDS):
            if not missing:
                break
            claimed = await self.claim(order, missing)
            order.ended = 0
            needing = [job for job in claimed if job.resources]
            started += [job for job in claimed if not job.resources]
            ready = await self._start(order, needing) if needing else []
            started += ready
            missing = dict(Counter(job.pool for job in needing) - Counter(job.pool for job in ready))
        for pool in missing:
            # So many had to be parked that this exchange stops here: whoever is idle goes on at once.
            self._x.wake(pool_topic(pool))
        prefetch = {pool: want.prefetch for pool, want in wanted.items() if want.prefetch}
        if prefetch:
            held += await self.claim(replace(order, ended=0, state=JobState.CLAIMED), prefetch)
        await self._rest(order)

    async def _rest(self, order: ClaimOrder) -> None:
        if order.ended:
            await self._x.fetch("count_ended", id=order.session, ended=order.ended)
            order.ended = 0

    async def _start(self, order: ClaimOrder, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        """Held jobs enter their handlers, those that need extra resources only if they get all of them."""
        if any(job.resources for job in jobs):
            # Who lost a claim may neither take a place for the job nor park it: it is someone else's now.
            rows = await self._x.each("still_held", [(job.id, job.token) for job in jobs], session=order.session)
            held = {row[0] for row in rows}
            jobs = [job for job in jobs if job.id in held]
        able = [job for job in jobs if not job.resources or await self._acquire(job)]
        rows = await self._x.each("start", [(job.id, job.token) for job in able], session=order.session, now=order.now)
        if rows:
            await self._x.fetch("count_started", id=order.session, started=len(rows))
        started = sorted(map(ClaimedJob._make, rows), key=_place)
        if begun := [(job.ledger_run,) for job in started if job.ledger_run]:
            await self._x.each("begin_runs", begun, now=order.now)
        return started

    async def _acquire(self, job: ClaimedJob) -> bool:
        """Takes every extra resource, or none: then the job is parked on the one it lacks."""
        taken = Counter[PoolName]()
        for name in resource_names(job.resources):
            # Locked before it is judged: a place freed meanwhile is either seen here or sees the parked job.
            (row,) = await self._x.fetch("lock_pool", name=name)
            if not pool_from_row(row).has_room:
                await self._x.fetch("park", id=job.id, resource=name)
                await self._x.fetch("count_one_parked", name=name)
                await self._lanes.step_back([job.lane])
                await self.release(taken + Counter([job.pool]))
                return False
            await self._x.fetch("take_slot", name=name)
            taken[name] += 1
        return True

    async def give_back(self, session: SessionId, jobs: Sequence[ClaimedJob], now: Instant) -> int:
        """Answers how many returned to their places; one that was to be stopped ends instead."""
        rows = await self._x.each("give_back", [(job.id, job.token) for job in jobs], session=session)
        returned: dict[JobId, str | None] = dict(rows)
        back = [job for job in jobs if job.id in returned]
        running = [job for job in back if job.state == JobState.RUNNING]
        if running:
            await self._x.fetch("count_ended", id=session, ended=len(running))
            await self._x.each("uncount_attempts", [(job.ledger_run,) for job in running if job.ledger_run])
        freed = Counter(job.pool for job in back)
        freed.update(name for job in running for name in resource_names(job.resources))
        await self.release(freed)
        cancelled = [job for job in back if returned[job.id] is not None]
        members: list[JobId] = []
        for job in cancelled:
            await self._x.fetch("record_withdrawn", id=job.id, reason=returned[job.id], now=now)
            ((member,),) = await self._x.fetch("remove_job", id=job.id)
            if job.kind == GRAPH_RUN:
                await withdraw_with(self._x, job.id, reason=str(returned[job.id]), now=now)
            members += [job.id] if member else []
        await self._end_runs(job.id for job in cancelled if job.ledger_run)
        await self._lanes.leave(job.lane for job in cancelled if job.lane)
        await self._lanes.step_back(job.lane for job in back)
        for job in back:
            self._x.wake(pool_topic(job.pool))
        if members:
            await Memberships(self._x).end(members, now)
        return len(back) - len(cancelled)

    async def suspend(self, session: SessionId, job: ClaimedJob, until: Instant, now: Instant) -> None:
        """As giving back, but not to the order: until its time comes the job has its lane and nothing else."""
        if not await self._x.fetch("suspend_job", id=job.id, session=session, token=job.token, until=until):
            await self.give_back(session, [job], now)
            return
        await self._x.fetch("count_ended", id=session, ended=1)
        if job.ledger_run:
            await self._x.each("uncount_attempts", [(job.ledger_run,)])
        await self.release(Counter([job.pool, *resource_names(job.resources)]))
        self._x.wake(DUE)

    async def _lock_pools(
        self, reports: Sequence[Report], starting: Sequence[ClaimedJob], wanted: Mapping[PoolName, Wanted]
    ) -> None:
        names: set[str] = set(wanted)
        for job in (*(report.job for report in reports), *starting):
            names |= {job.pool, *resource_names(job.resources)}
        if len(names) > 1:
            await self._hot.lock_pools(self._x, sorted(names))


def _first_of_each_job(reports: Sequence[Report]) -> Sequence[Report]:
    """A run has one end: what was said first."""
    first: dict[tuple[JobId, Token], Report] = {}
    for report in reports:
        first.setdefault((report.job.id, report.job.token), report)
    return list(first.values())


def are_alike(reports: Sequence[Row]) -> bool:
    """The common batch: runs of one claim that all succeeded and had nothing to say."""
    token, *ending = reports[0][1:]
    alike = (token, *_SUCCESS)
    return tuple(ending) == _SUCCESS and all(report[1:] == alike for report in reports)


def _place(job: ClaimedJob) -> tuple[int, int, int, str]:
    return job.order


def _retry_state(job: Job) -> JobState:
    """One that need not wait keeps its place in the order, too."""
    return JobState.READY if job.run_at <= job.created_at else JobState.BACKOFF
