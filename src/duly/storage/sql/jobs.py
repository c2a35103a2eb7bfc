"""Jobs in SQL: put, look, cancel, stage, prune."""

from collections.abc import Iterable, Sequence

from duly.domain.errors import Unavailable
from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import JobId, JobKey, Owner, PoolName
from duly.domain.instants import Instant, Micros
from duly.domain.jobs import (
    Crowd,
    Entry,
    FinishedJob,
    Job,
    JobAlreadyFinished,
    JobLocked,
    JobState,
    JobStatus,
    NewJob,
    Place,
    Put,
    PutOutcome,
    SlotJob,
    UnknownJob,
)
from duly.domain.payloads import Payload
from duly.domain.pools import Pool, PoolDraining, PoolMode, UnknownPool
from duly.storage.errors import ConstraintViolated
from duly.storage.executor import Executor, Row
from duly.storage.sql.ended_jobs import ended_jobs
from duly.storage.sql.lanes import Lanes
from duly.storage.sql.memberships import Memberships
from duly.storage.sql.reviews import withdraw_with
from duly.storage.sql.rows import (
    PAST_EVERY_ID,
    arrival_row,
    entry_row,
    finished_from_row,
    job_from_row,
    pool_from_row,
    resources_text,
)
from duly.storage.sql.topics import CANCEL, DUE, pool_topic

_MOST_ROUNDS = 100
# To ask an enum for its value takes as long as three columns do.
_READY, _SCHEDULED = JobState.READY.value, JobState.SCHEDULED.value
_LOOK_AGAIN = Micros(50_000)


class SqlJobs:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    @property
    def _lanes(self) -> Lanes:
        return Lanes(self._x)

    async def put_if_free(self, entries: Sequence[Entry]) -> set[str]:
        return await self._insert(entries, JobState.READY)

    async def put(self, entries: Sequence[Entry]) -> list[Put]:
        await self._check_resources([entry.new for entry in entries])
        added = await self._insert(_first_of_each_key(entries), JobState.READY)
        puts = {job_id: Put(JobId(job_id), PutOutcome.CREATED) for job_id in added}
        rest = [entry for entry in entries if entry.id not in added]
        for _ in range(_MOST_ROUNDS):
            if not rest:
                return [puts[entry.id] for entry in entries]
            rest = await self._put_in_the_way(rest, puts)
        raise Unavailable(f"job {rest[0].id} keeps meeting others under its key; try again")

    async def put_alike(self, crowd: Crowd) -> bool:
        new = crowd.new
        if new.lane or new.resources or self._x.rerun:
            await self.put(crowd.entries())
            return True
        is_due = new.run_at is None or new.run_at <= crowd.created_at
        added = await self._x.each(
            "insert_alike",
            list(zip(crowd.ids, crowd.payloads, crowd.positions, strict=True)),
            kind=new.kind,
            pool=new.pool,
            priority=new.priority,
            run_at=crowd.created_at if new.run_at is None else new.run_at,
            created_at=crowd.created_at,
            state=(JobState.READY if is_due else JobState.SCHEDULED).value,
            max_attempts=new.retry.max_attempts,
            backoff_ms=new.retry.backoff_ms,
            backoff_cap_ms=new.retry.backoff_cap_ms,
            timeout_ms=new.timeout_ms,
        )
        if added:
            self._x.wake(pool_topic(new.pool) if is_due else DUE)
        return bool(added)

    async def _insert(self, entries: Sequence[Entry], in_lane: JobState) -> set[str]:
        """Adds those that nothing stands in the way of; a due job that has a lane enters it as `in_lane`."""
        rows = [entry_row(entry, _entry_state(entry, in_lane)) for entry in entries]
        if len(entries) == 1:
            # Before it is known whether it was added, so that the statement can take the hint along.
            self._wake(entries)
        added = {row[0] for row in await self._x.each("insert_jobs", rows)}
        self._wake(entry for entry in entries if entry.id in added)
        return added

    def _wake(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._x.wake(pool_topic(entry.new.pool) if entry.is_due else DUE)

    async def _put_in_the_way(self, entries: Sequence[Entry], puts: dict[str, Put]) -> list[Entry]:
        """Jobs that could not simply be added; answers those that must be tried once more."""
        known = {entry.id for entry in entries if await self._x.fetch("is_known", id=entry.id)}
        puts |= {job_id: Put(job_id, PutOutcome.CREATED) for job_id in known}
        unknown = [entry for entry in entries if entry.id not in known]
        for pool in sorted({entry.new.pool for entry in unknown}):
            await self._open_pool(pool)
        joining: list[Entry] = []
        for entry in unknown:
            if entry.new.key is None or (put := await self._put_over(entry)) is None:
                joining.append(entry)
            else:
                puts[entry.id] = put
        added = await self._insert(_first_of_each_key(joining), JobState.WAITING)
        puts |= {entry.id: Put(entry.id, PutOutcome.CREATED) for entry in joining if entry.id in added}
        lanes = {entry.new.lane for entry in joining if entry.id in added and entry.new.lane and entry.is_due}
        if lanes:
            await self._lanes.join(lanes)
        return [entry for entry in joining if entry.id not in added]

    async def _put_over(self, entry: Entry) -> Put | None:
        """An unlocked job with the same key is replaced, one that has begun left alone; None if there is neither.

        A job of the ledger takes nobody's place, and nobody takes its: its row says what ran for its slot.
        """
        for row in await self._x.fetch("job_by_key_locked", key=entry.new.key):
            standing = job_from_row(row)
            if standing.is_locked or standing.ledger_run or entry.ledger_run or await self._has_asked(standing):
                return Put(standing.id, PutOutcome.LEFT)
            await self._replace(standing, entry)
            return Put(standing.id, PutOutcome.REPLACED)
        return None

    async def _has_asked(self, job: Job) -> bool:
        """One that waits for a review, or is to go on after it, is unlocked and has begun all the same."""
        return job.kind == GRAPH_RUN and bool(await self._x.fetch("asked_by_job", job_id=job.id))

    async def _replace(self, standing: Job, entry: Entry) -> None:
        new = entry.new
        await self._x.fetch(
            "replace_job",
            id=standing.id,
            kind=new.kind,
            payload=entry.payload,
            lane=new.lane,
            pool=new.pool,
            resources=resources_text(new.resources),
            priority=new.priority,
            position=entry.position,
            run_at=entry.run_at,
            state=_entry_state(entry, JobState.WAITING),
            max_attempts=new.retry.max_attempts,
            backoff_ms=new.retry.backoff_ms,
            backoff_cap_ms=new.retry.backoff_cap_ms,
            timeout_ms=new.timeout_ms,
        )
        # It asks for something else now, and does not come from where it came from.
        await self._x.fetch("forget_origin", chain=standing.id)
        await self._x.fetch("name_share", id=standing.id)
        if standing.lane and standing.lane != new.lane:
            await self._lanes.leave([standing.lane])
        if new.lane and entry.is_due:
            await self._lanes.join([new.lane])
        elif standing.lane and standing.lane == new.lane:
            await self._lanes.leave([standing.lane])
        self._x.wake(pool_topic(new.pool) if entry.is_due else DUE)

    async def _check_resources(self, news: Sequence[NewJob | SlotJob]) -> None:
        for name in sorted({name for new in news for name in new.resources}):
            if not await self._x.fetch("hold_pool", name=name):
                raise UnknownPool(name, field="resources")

    async def _open_pool(self, name: PoolName) -> Pool:
        """A pool that takes new jobs, held."""
        rows = await self._x.fetch("hold_pool", name=name)
        if not rows:
            raise UnknownPool(name)
        pool = pool_from_row(rows[0])
        if pool.mode is PoolMode.DRAINING:
            raise PoolDraining(name)
        return pool

    async def get(self, job_id: JobId) -> Job | FinishedJob | None:
        for row in await self._x.fetch("job_by_id", id=job_id):
            return job_from_row(row)
        for row in await self._x.fetch("finished_by_id", id=job_id):
            return finished_from_row(row)
        return None

    async def lock(self, job_id: JobId) -> Job:
        for row in await self._x.fetch("job_by_id_locked", id=job_id):
            return job_from_row(row)
        if await self._x.fetch("finished_by_id", id=job_id):
            raise JobAlreadyFinished(job_id)
        raise UnknownJob(job_id)

    async def chain(self, job_id: JobId) -> list[Job | FinishedJob]:
        job = await self.get(job_id)
        # The first attempt gives a chain its name, and may have been pruned while a later one goes on.
        chain = job_id if job is None else job.chain
        ended = [finished_from_row(row) for row in await self._x.fetch("finished_chain", chain=chain)]
        live = [job_from_row(row) for row in await self._x.fetch("live_chain", chain=chain)]
        if not ended and not live:
            raise UnknownJob(job_id)
        return [*ended, *live]

    async def holder_of(self, key: JobKey) -> Job | None:
        for row in await self._x.fetch("job_by_key_locked", key=key):
            return job_from_row(row)
        return None

    async def upcoming(self, pool: PoolName, most: int) -> list[Job]:
        return [job_from_row(row) for row in await self._x.fetch("upcoming", pool=pool, most=most)]

    async def queued(self, pool: PoolName, owner: Owner | None, *, after: Place, most: int) -> list[Job]:
        asked = {"pool": pool, "most": most, **after._asdict()}
        if owner is None:
            rows = await self._x.fetch("queue_page", **asked)
        else:
            rows = await self._x.fetch("queue_page_of_owner", owner=owner, **asked)
        return [job_from_row(row) for row in rows]

    async def count_queued(self, pool: PoolName, *, after: Place, through: Place) -> int:
        last = {f"last_{name}": value for name, value in through._asdict().items()}
        ((count,),) = await self._x.fetch("count_in_order", pool=pool, **after._asdict(), **last)
        return int(count)

    async def live(
        self, owner: Owner | None, *, pool: PoolName | None, state: JobState | None, after: JobId | None, most: int
    ) -> list[Job]:
        asked = {"pool": pool, "state": state and state.value, "after": after or "", "most": most}
        if owner is None:
            rows = await self._x.fetch("live_jobs", **asked)
        else:
            rows = await self._x.fetch("live_jobs_of_owner", owner=owner, **asked)
        return [job_from_row(row) for row in rows]

    async def ended(
        self, owner: Owner | None, *, pool: PoolName | None, status: JobStatus | None, before: JobId | None, most: int
    ) -> list[FinishedJob]:
        rows = await ended_jobs(self._x, owner, pool, status, before=before or PAST_EVERY_ID, most=most)
        return [finished_from_row(row) for row in rows]

    async def cancel(self, job_id: JobId, *, reason: str, now: Instant) -> bool:
        job = await self.lock(job_id)
        if job.is_locked:
            await self._x.fetch("request_cancel", id=job_id, reason=reason)
            self._x.wake(CANCEL)
            return False
        await self._x.fetch("record_withdrawn", id=job_id, reason=reason, now=now)
        await self._x.fetch("remove_job", id=job_id)
        if job.kind == GRAPH_RUN:
            await withdraw_with(self._x, job_id, reason=reason, now=now)
        if job.ledger_run:
            await self._x.each("end_runs", [(job_id,)])
        if job.lane:
            await self._lanes.leave([job.lane])
        if job.member:
            await Memberships(self._x).end([job_id], now)
        return True

    async def set_payload(self, job: Job, payload: Payload) -> None:
        try:
            await self._x.fetch("set_payload", id=job.id, payload=payload)
        except ConstraintViolated as refusal:
            if refusal.name == "jobs_params_fixed":
                raise JobLocked(job.id) from refusal
            raise

    async def stage(self, now: Instant, most: int) -> Instant | None:
        due = await self._x.fetch("due", now=now, most=most)
        into_lanes = [(job_id, lane) for job_id, lane, _, state in due if lane and state == JobState.SCHEDULED]
        behind = {job_id for job_id, _ in into_lanes}
        alone = [(job_id,) for job_id, *_ in due if job_id not in behind]
        await self._x.each("set_state", alone, state=JobState.READY.value)
        await self._lanes.step_back(lane for _, lane, _, state in due if state == JobState.BACKOFF)
        if into_lanes:
            ids = [(job_id,) for job_id, _ in into_lanes]
            await self._x.each("set_state", ids, state=JobState.WAITING.value)
            await self._lanes.join(lane for _, lane in into_lanes)
        for pool in {pool for _, _, pool, _ in due}:
            self._x.wake(pool_topic(pool))
        rows = await self._x.fetch("next_due_at")
        next_at = rows[0][0]
        if next_at is not None and next_at <= now and not due:
            # Due, and yet not answered: someone else has it locked, and to ask again at once would only burn time.
            next_at = now + _LOOK_AGAIN
        return Instant(next_at) if next_at is not None else None

    async def prune(self, before: Instant, most: int) -> int:
        pruned = await self._x.fetch("prune_finished", before=before, most=most)
        for forget in ("forget_log_lines", "forget_progress", "forget_artifacts"):
            await self._x.each(forget, [(job_id,) for job_id, _ in pruned])
        chains = sorted({(chain,) for _, chain in pruned})
        for forget in ("forget_origins", "forget_retries"):
            await self._x.each(forget, chains)
        return len(pruned)


def _first_of_each_key(entries: Sequence[Entry]) -> Sequence[Entry]:
    """A statement that adds many takes them in an order of its own; of two with one key the later must win."""
    keys: set[str] = set()
    first = []
    for entry in entries:
        key = entry.new.key
        if key is None or key not in keys:
            first.append(entry)
        if key is not None:
            keys.add(key)
    return first


def arrival(entry: Entry) -> tuple[Row, str]:
    """A job that nothing but its pool can be in the way of: its row of `insert_arrival`, and whom to wake."""
    if entry.is_due:
        return arrival_row(entry, _READY), pool_topic(entry.new.pool)
    return arrival_row(entry, _SCHEDULED), DUE


def newcomer(entry: Entry) -> tuple[Row, str]:
    """A job that finds its lane free: its row of `insert_jobs`, and whom to wake."""
    if entry.is_due:
        return entry_row(entry, _READY), pool_topic(entry.new.pool)
    return entry_row(entry, _SCHEDULED), DUE


def _entry_state(entry: Entry, in_lane: JobState) -> str:
    if not entry.is_due:
        return _SCHEDULED
    return in_lane.value if entry.new.lane else _READY
