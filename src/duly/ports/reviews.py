"""Reviews as a store keeps them, and the deliveries that brought decisions."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.ids import JobId, Owner
from duly.domain.instants import Instant
from duly.domain.reviews import Review, ReviewState


class ReviewStore(Protocol):
    async def add(self, reviews: Sequence[Review]) -> None:
        """One whose question is there already is the same, written again."""

    async def get(self, review_id: str) -> Review | None: ...

    async def of_run(self, run_id: str) -> list[Review]:
        """Of all attempts of an execution, in order."""

    async def newest(
        self, owner: Owner | None, *, state: ReviewState | None, before: str | None, most: int
    ) -> list[Review]: ...

    async def overdue(self, now: Instant, most: int) -> list[Review]:
        """Open ones whose deadline has passed, the longest overdue first."""

    async def decide(self, decided: Review) -> bool:
        """Whether it was open; the first decision stands."""

    async def withdraw(self, run_id: str, *, reason: str, now: Instant) -> None:
        """Nobody need decide what is still open."""

    async def attach(self, run_id: str, job_id: JobId) -> None:
        """Which job asked, and goes on when they are decided."""

    async def lock_asker(self, job_id: JobId) -> None:
        """The job that asked, if it lives: always before its execution, as cancelling has it."""

    async def were_asked_by(self, job_id: JobId) -> bool:
        """Whether a job has asked before: it has begun, whatever it waits for now."""

    async def wake(self, job_id: JobId, now: Instant) -> None:
        """A job that is suspended is due now."""

    async def note_delivery(self, source: str, delivery_id: str, review_id: str, now: Instant) -> str | None:
        """Which review its first delivery was about: this one, unless it came before; None if nobody knows."""

    async def forget_deliveries(self, before: Instant) -> None: ...
