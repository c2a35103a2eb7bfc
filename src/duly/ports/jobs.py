"""Jobs as a store keeps them, in one transaction."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.ids import JobId, JobKey, Owner, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import Crowd, Entry, FinishedJob, Job, JobState, JobStatus, Place, Put
from duly.domain.payloads import Payload


class JobStore(Protocol):
    """Keeps the lane law: if a lane has a due job, exactly one job of it is head, and it is the best unclaimed one."""

    async def put_if_free(self, entries: Sequence[Entry]) -> set[str]:
        """Adds, in one statement, jobs whose keys and lanes are free and whose pools are open; answers their ids."""

    async def put(self, entries: Sequence[Entry]) -> list[Put]:
        """Adds each job, or replaces the unlocked job that has its key, or leaves the locked one alone."""

    async def put_alike(self, crowd: Crowd) -> bool:
        """Adds all of them, which have no keys; False if their pool takes none, and `put` will say why."""

    async def get(self, job_id: JobId) -> Job | FinishedJob | None: ...

    async def holder_of(self, key: JobKey) -> Job | None:
        """The live job that has a key, kept from changing until commit."""

    async def lock(self, job_id: JobId) -> Job:
        """A live job, kept from changing until commit; raises JobAlreadyFinished or UnknownJob if there is none."""

    async def chain(self, job_id: JobId) -> list[Job | FinishedJob]:
        """The attempts of a job, first to last, named by any of them."""

    async def upcoming(self, pool: PoolName, most: int) -> list[Job]:
        """What is ready in a pool, in the order in which it will run."""

    async def queued(self, pool: PoolName, owner: Owner | None, *, after: Place, most: int) -> list[Job]:
        """The same after a place in that order, of one owner if one is named."""

    async def count_queued(self, pool: PoolName, *, after: Place, through: Place) -> int:
        """How many are ready from after one place through another."""

    async def live(
        self, owner: Owner | None, *, pool: PoolName | None, state: JobState | None, after: JobId | None, most: int
    ) -> list[Job]:
        """In order of id; of an owner's runs, or of everybody and nobody if none is named."""

    async def ended(
        self, owner: Owner | None, *, pool: PoolName | None, status: JobStatus | None, before: JobId | None, most: int
    ) -> list[FinishedJob]:
        """The same of ended jobs, the last drawn id first."""

    async def cancel(self, job_id: JobId, *, reason: str, now: Instant) -> bool:
        """Ends a job that nobody has claimed (True), or asks the worker that has it to stop (False)."""

    async def set_payload(self, job: Job, payload: Payload) -> None:
        """Other params for a job that was locked here and that nobody has claimed; the schema refuses any other."""

    async def stage(self, now: Instant, most: int) -> Instant | None:
        """Makes due jobs ready, in their lanes; answers when the next one is due, which may be now."""

    async def prune(self, before: Instant, most: int) -> int:
        """Forgets jobs that ended before an instant and what they said, oldest first; answers how many."""
