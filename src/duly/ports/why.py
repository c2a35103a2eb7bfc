"""What only whoever asks why wants to know of the queue; nothing here writes or locks."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from duly.domain.explanations import SeenSession
from duly.domain.ids import JobId, Lane, PoolName, RunId, SessionId
from duly.domain.instants import Instant
from duly.domain.jobs import Job


class Aside(NamedTuple):
    """What a live job is parked on, and whose share of its pool it uses, if any."""

    parked_on: PoolName | None = None
    share: str | None = None


class WhyStore(Protocol):
    async def holders(self, pool: PoolName, most: int) -> list[Job]:
        """The jobs that have places of a pool, as their own or as an extra resource; the first started first."""

    async def calls(self, pool: PoolName) -> int:
        """How many direct calls have a place of it."""

    async def ahead(self, job: Job, most: int) -> tuple[int, list[Job]]:
        """How many ready jobs of its pool come before it, and the first of them."""

    async def head(self, lane: Lane) -> Job | None: ...

    async def ahead_in_lane(self, job: Job) -> int:
        """How many jobs that wait in its lane come before it."""

    async def aside(self, job_id: JobId) -> Aside: ...

    async def share_used(self, pool: PoolName, share: str) -> int: ...

    async def session(self, session: SessionId) -> SeenSession | None: ...

    async def asked_by_hand(self, chain: JobId) -> Mapping[JobId, Instant]:
        """The attempts of a chain that a person asked for, and when."""

    async def accepted_at(self, run_id: str) -> Instant | None:
        """When an executor elsewhere took the run of a workflow."""

    async def run_of_execution(self, execution: str) -> RunId | None:
        """The row of the ledger that an execution was begun for."""
