"""Sessions and their claims, as a store keeps them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from duly.domain.ids import JobId, PoolName, SessionId, Token
from duly.domain.instants import Instant, Micros
from duly.domain.sessions import Beat, ClaimedJob, Exchange, Report, Rescue, Session, Wanted


class SessionStore(Protocol):
    """At most one session holds a job, and only writes that carry its claim change the job."""

    async def open(self, session: Session, *, era: str, lease_now: Micros, now: Instant) -> None: ...

    async def live_kinds(self, *, era: str, lease_now: Micros) -> frozenset[str] | None:
        """The kinds that live sessions have handlers for; None if one of them did not say."""

    async def unpark(self) -> None:
        """Lets parked jobs try again where there is room and whoever was meant to take it did not."""

    async def beat(self, session: SessionId, *, era: str, lease_now: Micros, now: Instant) -> Beat:
        """Renews the lease, or raises SessionLost."""

    async def claim(
        self, session: SessionId, wanted: Mapping[PoolName, int], *, token: Token, now: Instant
    ) -> tuple[Sequence[ClaimedJob], Collection[PoolName]]:
        """The next jobs of each pool, in one statement. One that needs extra resources is held, not started.

        Also answers which of the pools have a limit per owner: of those it takes none, an exchange does.
        """

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
        """Records the runs that ended, starts what was held, and claims the next jobs.

        `again` repeats an exchange whose answer was lost, with the same token: what it did is found, not redone.
        """

    async def give_back(self, session: SessionId, jobs: Sequence[ClaimedJob], *, now: Instant) -> None:
        """Returns claims whose handlers were never entered to their places; one that was cancelled meanwhile ends."""

    async def suspend(self, session: SessionId, job: ClaimedJob, *, until: Instant, now: Instant) -> None:
        """A run that waits gives up its claim and its places; its job keeps its lane. One that was cancelled ends."""

    async def revoke(self, job_id: JobId, *, reason: str, now: Instant) -> bool:
        """Ends a running job as cancelled and voids its token; False if none runs. An unstarted claim is taken back."""

    async def expired(self, *, era: str, lease_now: Micros, most: int) -> list[SessionId]:
        """Sessions whose lease ran out, kept from others until commit."""

    async def rescue(self, session: SessionId, retries: Sequence[tuple[JobId, float]], *, now: Instant) -> Rescue:
        """Takes over a dead session's work, as many jobs as there are ids for retries, and ends it when none is left.

        A claim that had not started returns to its place; a run that had started fails, and is retried by its policy.
        """

    async def recount(self) -> None:
        """Counts what is used of every pool anew, from the jobs and tickets that are there."""
