"""Moves within a pool's order. A job moved next to one of another priority takes that priority."""

from dataclasses import dataclass

from duly.domain import positions
from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.jobs import HIGHEST_PRIORITY, Job, JobsApart
from duly.domain.texts import whole_number_of
from duly.ports.storage import Storage, Transaction

# Rows looked at, then moved together, when two neighbours have no number left between them.
_WINDOWS = (8, 64, 512, 4096, 32768)


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
            following = await tx.order.after(target, apart_from=job_id)
            if following is not None:
                await _place_before(tx, job, following, priority=target.priority)
            else:
                await _place_last(tx, job, target, now=now)

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
