"""Places within a pool's order, as a store keeps them."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import Job


class OrderStore(Protocol):
    async def lock(self, job_id: JobId) -> Job:
        """A job that may be moved: known, not ended, not claimed. Its pool's order stands still until commit."""

    async def first(self, pool: PoolName, *, apart_from: JobId) -> Job | None: ...

    async def before(self, job: Job, *, apart_from: JobId, most: int) -> list[tuple[JobId, int]]:
        """The jobs of the same rank right before a job with their positions, nearest first.

        Claimed ones count: they may be given back to their places.
        """

    async def after(self, job: Job, *, apart_from: JobId) -> Job | None:
        """The job of the same rank right after a job."""

    async def shares_its_place(self, job: Job) -> bool:
        """Whether another job has the same position, so that only age tells them apart."""

    async def place(self, job: Job, *, priority: int, rank: int, position: int) -> None:
        """Gives a job its place, and its lane the head that follows from it."""

    async def reprioritise(self, job: Job, priority: int) -> None: ...

    async def renumber(self, positions: Sequence[tuple[JobId, int]]) -> None: ...
