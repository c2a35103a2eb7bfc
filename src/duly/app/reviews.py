"""Reviews as a program sees them: its owner's, to list and to decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from duly.bootstrap import Queue
from duly.domain.reviews import Decision, Review, ReviewState, Verdict


@dataclass(frozen=True, slots=True)
class OwnReviews:
    """`by` is who decides, the program's owner unless somebody else is named; `key` makes a decision safe to repeat."""

    queue: Queue
    owner: str

    async def list(self, *, state: str | None = "open", most: int = 100) -> Sequence[Review]:
        """Newest first; those that are open, unless told otherwise."""
        known = None if state is None else ReviewState(state)
        return await self.queue.reviews.list(owner=self.owner, state=known, most=most)

    async def get(self, review_id: str) -> Review:
        return await self.queue.reviews.get(review_id, owner=self.owner)

    async def approve(self, review_id: str, *, note: str = "", by: str | None = None, key: str | None = None) -> Review:
        """The graph goes on with `true`."""
        return await self.decide(review_id, Verdict.APPROVE, note=note, by=by, key=key)

    async def reject(self, review_id: str, *, note: str = "", by: str | None = None, key: str | None = None) -> Review:
        """The run ends, cancelled."""
        return await self.decide(review_id, Verdict.REJECT, note=note, by=by, key=key)

    async def edit(
        self, review_id: str, value: Any, *, note: str = "", by: str | None = None, key: str | None = None
    ) -> Review:
        """The graph goes on with the value."""
        return await self.decide(review_id, Verdict.EDIT, value, note=note, by=by, key=key)

    async def decide(
        self,
        review_id: str,
        verdict: Verdict,
        value: Any = None,
        *,
        note: str = "",
        by: str | None = None,
        key: str | None = None,
    ) -> Review:
        decision = Decision(verdict=verdict, value=value, note=note, by=by or self.owner, key=key)
        return await self.queue.reviews.decide(review_id, decision, owner=self.owner)
