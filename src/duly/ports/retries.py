"""Retries by hand, as a store keeps them."""

from typing import NamedTuple, Protocol

from duly.domain.ids import JobId, Owner, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import FinishedJob, Job


class FailedAsked(NamedTuple):
    """Which failed chains; what is None is not asked about. `until` itself is not in it."""

    pool: PoolName | None = None
    kind: str | None = None
    since: Instant | None = None
    until: Instant | None = None


class RetryStore(Protocol):
    async def by_key(self, chain: JobId, key: str) -> JobId | None:
        """What was put when a retry of the chain was asked for under this key."""

    async def lock_last(self, chain: JobId, *, asked: JobId) -> FinishedJob:
        """The last attempt of an ended chain, for one caller at a time; raises ChainLive or UnknownJob."""

    async def budget(self, last: FinishedJob) -> int:
        """How many attempts the chain's policy allows, however often they were renewed."""

    async def execution_key(self, chain: JobId, attempt: int) -> str | None:
        """The key that an attempt's graph is executed under, if a person had it executed anew."""

    async def add(self, job: Job, *, key: str | None, execution_key: str | None = None) -> None:
        """Puts the next attempt, last in its order; raises KeyTaken, PoolDraining or UnknownPool."""

    async def failed(
        self, owner: Owner | None, asked: FailedAsked, *, before: JobId | None, most: int
    ) -> list[FinishedJob]:
        """The last attempts of chains that failed for good, the last drawn id first."""
