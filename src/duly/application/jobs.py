"""What callers do with jobs: put them, look at them, withdraw them, forget old ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, repeat
from typing import Any

from duly.application.cancelling import prune_tombstones
from duly.application.gathering import Gathering
from duly.application.owners import holder_of_own, job_known
from duly.application.places import Places
from duly.application.retries import FailedFilter, Retried, Retries
from duly.application.stopping import is_cancelled
from duly.application.templates import template_known
from duly.domain.amounts import Amount
from duly.domain.errors import InvalidInput, Unavailable
from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import JobId, JobKey, Lane, Owner, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import (
    BEFORE_ALL,
    Crowd,
    Entry,
    FinishedJob,
    Job,
    JobLocked,
    JobState,
    JobStatus,
    NewJob,
    Place,
    Put,
    PutOutcome,
    UnknownJob,
)
from duly.domain.payloads import Payload, payload_of
from duly.domain.templates import Origin
from duly.domain.texts import text_of, whole_number_of
from duly.ports.dice import Dice
from duly.ports.prices import Prices
from duly.ports.storage import Storage, Transaction

STAGE_BATCH = 500
PRUNE_BATCH = 1_000
MOST_LISTED = 1_000
MOST_PLACES = 10_000


@dataclass(frozen=True, slots=True)
class Jobs:
    storage: Storage
    dice: Dice
    _places: Places = field(default_factory=Places)
    prices: Prices | None = None
    _gathering: Gathering = field(init=False)
    _retries: Retries = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_gathering", Gathering(self.storage))
        object.__setattr__(self, "_retries", Retries(self.storage, self.dice, self._places, self.prices))

    async def put(self, new: NewJob, *, job_id: JobId | None = None) -> Put:
        """Durable when it returns. Callers that come while another put commits share the next commit.

        Who may have to repeat a put gives a `job_id`: a job of that id, live or ended, is found, not put twice.
        """
        now = self.storage.clock.now()
        drawn = JobId(self.dice.new_id("job")) if job_id is None else job_id
        entry = Entry(drawn, new, new.payload, now, self._places.take(now))
        if not new.resources and job_id is None:
            is_added = self._gathering.put_at_once(entry)
            if is_added or (is_added is None and await self._gathering.put(entry)):
                return Put(entry.id, PutOutcome.CREATED)
        (put,) = await self._put([entry])
        return put

    async def put_many(self, news: Sequence[NewJob]) -> list[Put]:
        """All of them or none, in one transaction, in the order given."""
        return await self._put(self._entries(news)) if news else []

    async def put_alike(self, new: NewJob, params: Iterable[Mapping[str, Any]]) -> list[Put]:
        """The same job for each of many params, all or none, in one transaction: what they share is checked once."""
        if new.params is not None or new.key is not None:
            raise InvalidInput(
                "params", "each job has its own, and a key would make them one job", fix="leave both out"
            )
        payloads = _payloads(list(params))
        now = self.storage.clock.now()
        ids = [JobId(self.dice.new_id("job")) for _ in payloads]
        first = self._places.take(now, len(ids))
        crowd = Crowd(new, ids, payloads, now, range(first, first + len(ids)))

        async def work(tx: Transaction) -> bool:
            return await tx.jobs.put_alike(crowd)

        if payloads and not await self.storage.transact(work, single=not (new.lane or new.resources)):
            await self._put(crowd.entries())
        return list(map(Put, ids, repeat(PutOutcome.CREATED)))

    async def put_from(
        self,
        template: str,
        params: Mapping[str, Any] | None = None,
        *,
        owner: str | None,
        key: JobKey | None = None,
        lane: Lane | None = None,
        priority: int | None = None,
        run_at: Instant | None = None,
        job_id: JobId | None = None,
    ) -> Put:
        """A job made from a template: a snapshot of it, with what is given here in its places, that stays as it is.

        Under a `job_id` of the caller's it is put once, whatever has become of it, or of its template.
        """
        now = self.storage.clock.now()
        is_named = job_id is not None
        job_id, position = job_id or JobId(self.dice.new_id("job")), self._places.take(now)

        async def work(tx: Transaction) -> Put:
            if is_named and await tx.jobs.get(job_id) is not None:
                return Put((await job_known(tx, job_id, owner)).id, PutOutcome.CREATED)
            mould = await template_known(tx, template, owner)
            made = mould.snapshot(params, key=key, lane=lane, priority=priority, run_at=run_at)
            holder = None if owner is None else await holder_of_own(tx, key, owner)
            (put,) = await tx.jobs.put([Entry(job_id, made.new, made.payload(), now, position)])
            if owner is not None and put.outcome is not PutOutcome.CREATED and put.job_id != holder:
                raise Unavailable(f"another job took the key {key!r} meanwhile; try again")
            if put.outcome is not PutOutcome.LEFT:
                await tx.origins.save([(put.job_id, made.origin(mould.owner))])
            return put

        return await self.storage.transact(work)

    async def edit_params(self, job_id: JobId, params: Mapping[str, Any], *, owner: str | None = None) -> Job:
        """Other params for a job that nobody has yet; from its dispatch on they are fixed."""

        async def work(tx: Transaction) -> Job:
            if owner is not None:
                await job_known(tx, job_id, owner)
            job = await tx.jobs.lock(job_id)
            # One that has asked was dispatched: what it began is known by what it was asked for.
            if job.is_locked or (job.kind == GRAPH_RUN and await tx.reviews.were_asked_by(job_id)):
                raise JobLocked(job_id)
            origin = await tx.origins.get(job.chain) or Origin(owner=Owner(""))
            payload = origin.payload_for(params, of=job.payload, kind=job.kind)
            await tx.jobs.set_payload(job, payload)
            return replace(job, payload=payload)

        return await self.storage.transact(work)

    async def retry(self, job_id: JobId, *, owner: str | None = None, key: str | None = None) -> Put:
        """Tries an ended chain again, as often as its policy allows; refused while it is live."""
        return await self._retries.one(job_id, owner=owner, key=key)

    async def failed(
        self, *, owner: str | None, which: FailedFilter | None = None, before: str | None = None, most: int = 100
    ) -> Sequence[FinishedJob]:
        """The last attempts of chains that failed for good, newest id first; `before` is the last id seen."""
        return await self._retries.failed(owner=owner, which=which, before=before, most=most)

    async def retry_failed(
        self,
        which: FailedFilter,
        *,
        owner: str | None,
        cap: int,
        max_cost: Amount | None = None,
        dry_run: bool = True,
    ) -> Retried:
        """Tries failed chains again, at most `cap`; a preview of exactly what it would touch, unless told otherwise."""
        return await self._retries.many(which, owner=owner, cap=cap, max_cost=max_cost, dry_run=dry_run)

    async def _put(self, entries: Sequence[Entry]) -> list[Put]:
        async def work(tx: Transaction) -> list[Put]:
            return await tx.jobs.put(entries)

        return await self.storage.transact(work)

    def _entries(self, news: Sequence[NewJob]) -> list[Entry]:
        now = self.storage.clock.now()
        first = self._places.take(now, len(news))
        return [
            Entry(JobId(self.dice.new_id("job")), new, new.payload, now, position)
            for position, new in enumerate(news, first)
        ]

    async def get(self, job_id: JobId) -> Job | FinishedJob:
        async def work(tx: Transaction) -> Job | FinishedJob | None:
            return await tx.jobs.get(job_id)

        job = await self.storage.read(work)
        if job is None:
            raise UnknownJob(job_id)
        return job

    async def chain(self, job_id: JobId, *, owner: str | None = None) -> list[Job | FinishedJob]:
        """The attempts of a job, first to last, named by any of them."""

        async def work(tx: Transaction) -> list[Job | FinishedJob]:
            if owner is not None:
                await job_known(tx, job_id, owner)
            return await tx.jobs.chain(job_id)

        return await self.storage.read(work)

    async def upcoming(self, pool: PoolName, *, most: int = 100) -> list[Job]:
        """What is ready in a pool, in the order in which it will run."""
        whole_number_of(most, field="most", least=1, most=10_000)

        async def work(tx: Transaction) -> list[Job]:
            return await tx.jobs.upcoming(pool, most)

        return await self.storage.read(work)

    async def queued(
        self, pool: PoolName, *, owner: str | None, after: Place | None = None, most: int = 100
    ) -> list[tuple[int, Job]]:
        """A page of what is ready in a pool, each with its place in the order in which it will run.

        Places count everybody's jobs, an owner is shown its own; `after` is where the last one seen was.
        """
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        whose = None if owner is None else Owner(text_of(owner, field="owner"))

        async def work(tx: Transaction) -> list[tuple[int, Job]]:
            found = await tx.jobs.queued(pool, whose, after=after or BEFORE_ALL, most=most)
            page, last, place = list[tuple[int, Job]](), BEFORE_ALL, 0
            for job in found:
                here = Place(*job.order)
                # Between an owner's own are others'; without one, only before the first.
                is_next = owner is None and page
                place += 1 if is_next else await tx.jobs.count_queued(pool, after=last, through=here)
                last = here
                page.append((place, job))
            return page

        return await self.storage.read(work)

    async def places(self, pool: PoolName, *, owner: str | None) -> list[tuple[int, Job]]:
        """What is ready in a pool, each with its place in the order in which it will run; an owner's own only."""
        order = list(enumerate(await self.upcoming(pool, most=MOST_PLACES), 1))
        if owner is None:
            return order
        own: set[JobId] = set()
        last: str | None = None
        while page := await self.list(owner=owner, pool=pool, state=JobState.READY, after=last, most=MOST_LISTED):
            own |= {job.id for job in page}
            last = page[-1].id
        return [(place, job) for place, job in order if job.id in own]

    async def cancel(self, job_id: JobId, *, reason: str, owner: str | None = None) -> bool:
        """Ends a job that nobody has claimed (True), or asks the worker that has it to stop (False)."""
        text_of(reason, field="reason", longest=1_000)
        now = self.storage.clock.now()
        earlier_runs = count()

        async def work(tx: Transaction) -> bool:
            is_rerun = next(earlier_runs) > 0
            if owner is not None:
                await job_known(tx, job_id, owner)
            if is_rerun and is_cancelled(await tx.jobs.get(job_id), reason=reason, now=now):
                return True
            return await tx.jobs.cancel(job_id, reason=reason, now=now)

        return await self.storage.transact(work)

    async def stage(self) -> Instant | None:
        """Makes due jobs ready; answers when the next one is due, which may be now."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Instant | None:
            return await tx.jobs.stage(now, STAGE_BATCH)

        return await self.storage.transact(work)

    async def prune(self, *, before: Instant) -> int:
        """Forgets jobs that ended before an instant, a few in each transaction; answers how many.

        With them go the cancellations of calls that never came.
        """
        pruned = 0
        await prune_tombstones(self.storage, before=before)

        async def work(tx: Transaction) -> int:
            return await tx.jobs.prune(before, PRUNE_BATCH)

        while count := await self.storage.transact(work):
            pruned += count
        return pruned

    async def find(self, job_id: JobId, *, owner: str | None) -> Job | FinishedJob:
        """A job that the caller may see: of its own runs, or any for an operator, who names no owner."""
        return await self.storage.read(lambda tx: job_known(tx, JobId(text_of(job_id, field="id")), owner))

    async def ended(
        self,
        *,
        owner: str | None,
        pool: str | None = None,
        status: JobStatus | None = None,
        before: str | None = None,
        most: int = 100,
    ) -> Sequence[FinishedJob]:
        """Ended jobs, the last put first; `before` is the id of the last one seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        whose, name = _whose(owner), None if pool is None else PoolName(text_of(pool, field="pool"))
        last = None if before is None else JobId(text_of(before, field="before"))

        async def work(tx: Transaction) -> Sequence[FinishedJob]:
            return await tx.jobs.ended(whose, pool=name, status=status, before=last, most=most)

        return await self.storage.read(work)

    async def list(
        self,
        *,
        owner: str | None,
        pool: str | None = None,
        state: JobState | None = None,
        after: str | None = None,
        most: int = 100,
    ) -> Sequence[Job]:
        """Live jobs in order of id; `after` is the id of the last one seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        whose, name = _whose(owner), None if pool is None else PoolName(text_of(pool, field="pool"))
        last = None if after is None else JobId(text_of(after, field="after"))

        async def work(tx: Transaction) -> Sequence[Job]:
            return await tx.jobs.live(whose, pool=name, state=state, after=last, most=most)

        return await self.storage.read(work)


def _whose(owner: str | None) -> Owner | None:
    return None if owner is None else Owner(text_of(owner, field="owner"))


def _payloads(params: Sequence[Mapping[str, Any]]) -> list[Payload]:
    try:
        return [payload_of(each, field="params") for each in params]
    except InvalidInput:
        # Named only now that it is known that one is wrong.
        return [payload_of(each, field=f"params[{index}]") for index, each in enumerate(params)]
