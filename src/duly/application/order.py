"""Moves within a pool's order. A job moved next to one of another priority takes that priority."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from duly.domain import positions
from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.jobs import HIGHEST_PRIORITY, Job, JobsApart
from duly.domain.texts import whole_number_of
from duly.ports.storage import Storage, Transaction

# Rows looked at, then moved together, when two neighbours have no number left between them.
_WINDOWS = (8, 64, 512, 4096, 32768)
MOST_PLACES = 10_000
MOST_ARRANGED = 200


@dataclass(frozen=True, slots=True)
class Order:
    storage: Storage

    async def before(self, job_id: JobId, other: JobId) -> None:
        async def work(tx: Transaction) -> None:
            if job_id == other:
                return
            job, target = await _both(tx, job_id, other)
            await _place_before(tx, job, target)

        await self.storage.transact(work)

    async def after(self, job_id: JobId, other: JobId) -> None:
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> None:
            if job_id == other:
                return
            job, target = await _both(tx, job_id, other)
            await _place_after(tx, job, target, now=now)

        await self.storage.transact(work)

    async def swap(self, job_id: JobId, other: JobId) -> None:
        now = self.storage.clock.now()
        swapped: list[tuple[int, int, int, str]] = []

        async def work(tx: Transaction) -> None:
            if job_id == other:
                return
            job, target = await _both(tx, job_id, other)
            if [job.order, target.order] == swapped:
                return  # run again after a lost answer: once more would undo it
            await _exchange(tx, job, target, now=now)
            swapped[:] = [moved.order for moved in await _both(tx, job_id, other)]

        await self.storage.transact(work)

    async def to_front(self, job_id: JobId) -> None:
        """Runs next in its pool, of the jobs that nobody has claimed."""

        async def work(tx: Transaction) -> None:
            job = await tx.order.lock(job_id)
            first = await tx.order.first(job.pool, apart_from=job_id)
            if first is not None and first.order < job.order:
                await _place_before(tx, job, first)

        await self.storage.transact(work)

    async def to_place(self, job_id: JobId, place: int) -> None:
        """So that it has that place, counted from 1, among what is ready in its pool; past the end, the last one."""
        whole_number_of(place, field="place", least=1, most=MOST_PLACES)
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> None:
            job = await tx.order.lock(job_id)
            others = [other for other in await tx.jobs.upcoming(job.pool, place + 1) if other.id != job_id]
            if len(others) >= place:
                await _place_before(tx, job, others[place - 1])
            elif others:
                await _place_after(tx, job, others[-1], now=now)

        await self.storage.transact(work)

    async def arrange(self, jobs: Sequence[JobId]) -> None:
        """These run one after the other, in the order given, from the first place that one of them has."""
        whole_number_of(len(jobs), field="jobs", least=1, most=MOST_ARRANGED)
        if len(set(jobs)) < len(jobs):
            raise InvalidInput("jobs", "one of them is named twice", fix="name each job once")
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> None:
            locked = [await tx.order.lock(job_id) for job_id in jobs]
            for other in locked[1:]:
                if other.pool != locked[0].pool:
                    raise JobsApart(locked[0].id, other.id)
            first = min(locked, key=lambda job: job.order)
            if first.id != jobs[0]:
                await _place_before(tx, locked[0], first)
            for before, job in pairwise(jobs):
                # Both anew: making room may have moved them.
                await _place_after(tx, await tx.order.lock(job), await tx.order.lock(before), now=now)

        await self.storage.transact(work)

    async def reprioritise(self, job_id: JobId, priority: int) -> None:
        whole_number_of(priority, field="priority", least=-HIGHEST_PRIORITY, most=HIGHEST_PRIORITY)

        async def work(tx: Transaction) -> None:
            await tx.order.reprioritise(await tx.order.lock(job_id), priority)

        await self.storage.transact(work)


async def _both(tx: Transaction, job_id: JobId, other: JobId) -> tuple[Job, Job]:
    job, target = await tx.order.lock(job_id), await tx.order.lock(other)
    if job.pool != target.pool:
        raise JobsApart(job_id, other)
    return job, target


async def _place_before(tx: Transaction, job: Job, target: Job, *, priority: int | None = None) -> None:
    """Between the target and the one before it, after making room there if need be."""
    nearest = await tx.order.before(target, apart_from=job.id, most=1)
    position = positions.between(nearest[0][1] if nearest else None, target.position)
    if position is None:
        position = await _make_room_before(tx, target, apart_from=job.id)
    priority = target.priority if priority is None else priority
    await tx.order.place(job, priority=priority, rank=target.rank, position=position)


async def _place_after(tx: Transaction, job: Job, target: Job, *, now: Instant) -> None:
    following = await tx.order.after(target, apart_from=job.id)
    if following is not None:
        await _place_before(tx, job, following, priority=target.priority)
    else:
        await _place_last(tx, job, target, now=now)


async def _place_last(tx: Transaction, job: Job, target: Job, *, now: Instant) -> None:
    position = positions.at_the_end(target.position, now)
    await tx.order.place(job, priority=target.priority, rank=target.rank, position=position)


async def _exchange(tx: Transaction, job: Job, target: Job, *, now: Instant) -> None:
    if await tx.order.shares_its_place(job) or await tx.order.shares_its_place(target):
        first, last = sorted((job, target), key=lambda job: job.order)
        await _trade_places(tx, first, last, now=now)
        return
    await tx.order.place(job, priority=target.priority, rank=target.rank, position=target.position)
    await tx.order.place(target, priority=job.priority, rank=job.rank, position=job.position)


async def _trade_places(tx: Transaction, first: Job, last: Job, *, now: Instant) -> None:
    """For jobs whose numbers others have too: those would end on the wrong side of an exchanged number."""
    following = await tx.order.after(last, apart_from=first.id)
    await _place_before(tx, last, first)
    if following is not None:
        await _place_before(tx, first, following, priority=last.priority)
    else:
        await _place_last(tx, first, last, now=now)


async def _make_room_before(tx: Transaction, target: Job, *, apart_from: JobId) -> int:
    """Spreads the nearest jobs over the gap before them: only as many as it takes."""
    for window in _WINDOWS:
        near = await tx.order.before(target, apart_from=apart_from, most=window + 1)
        moved = [job_id for job_id, _ in reversed(near[:window])]
        lower = near[window][1] if len(near) > window else None
        places = positions.spread(len(moved) + 1, lower=lower, upper=target.position)
        if places is not None:
            await tx.order.renumber(list(zip(moved, places, strict=False)))
            return places[-1]
    raise RuntimeError("no gap within reach of the target")
