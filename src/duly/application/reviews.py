"""What people do with reviews: look at them and decide them; what nobody decides in time, a timekeeper does."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from duly.domain.executions import Execution, ExecutionStatus, failed
from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.reviews import (
    NOBODY,
    AlreadyDecided,
    Decision,
    DeliveryReplayed,
    Review,
    ReviewState,
    UnknownReview,
    end_by,
    reply_of,
    value_text,
)
from duly.domain.texts import text_of, whole_number_of
from duly.ports.storage import Storage, Transaction, Work

T = TypeVar("T")

MOST_LISTED = 1_000
EXPIRED_AT_ONCE = 50
_KEPT_DELIVERIES_US = 7 * 86_400_000_000


@dataclass(frozen=True, slots=True)
class Delivery:
    """An inbound webhook that brought a decision; it decides one review, and that once, however often it comes."""

    source: str
    id: str


@dataclass(frozen=True, slots=True)
class Reviews:
    """`owner` is the caller, who sees only its own; an operator names none."""

    storage: Storage

    async def get(self, review_id: str, *, owner: str | None) -> Review:
        return await self.storage.read(lambda tx: _known(tx, review_id, owner))

    async def list(
        self,
        *,
        owner: str | None,
        state: ReviewState | None = None,
        before: str | None = None,
        most: int = 100,
    ) -> Sequence[Review]:
        """Newest first; `before` is the id of the last one seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        whose = None if owner is None else Owner(text_of(owner, field="owner"))
        last = None if before is None else text_of(before, field="before")
        return await self.storage.read(lambda tx: tx.reviews.newest(whose, state=state, before=last, most=most))

    async def of_run(self, run_id: str, *, owner: str | None) -> Sequence[Review]:
        """Of one execution, in order."""
        found = await self.storage.read(lambda tx: tx.reviews.of_run(text_of(run_id, field="run_id")))
        return [review for review in found if owner in (None, review.owner)]

    async def decide(
        self, review_id: str, decision: Decision, *, owner: str | None, delivery: Delivery | None = None
    ) -> Review:
        """The decision, and its run is put back to work, in one transaction. The first decision stands.

        Raises AlreadyDecided, unless it is this very decision under its key that stands, and DeliveryReplayed if the
        delivery that brings it has decided another review.
        """
        now, earlier_runs = self.storage.clock.now(), count()

        async def work(tx: Transaction) -> Review:
            is_rerun = next(earlier_runs) > 0
            asked = await _known(tx, review_id, owner)
            if delivery is not None:
                await _require_not_replayed(tx, delivery, asked, now)
            execution, found = await _locked(tx, asked)
            is_ours = is_rerun and (found.decided_by, found.decided_at) == (decision.by, now)
            if is_ours or found.is_told_again(decision):
                return found
            if not found.is_open or execution is None:
                raise AlreadyDecided(found)
            found.require_takes(decision)
            return await _decided(tx, execution, _as_decided(found, decision, now), now)

        return await self._in_order(work)

    async def expire_some(self) -> bool:
        """Acts on the defaults of those nobody decided in time; answers whether there may be more."""
        now = self.storage.clock.now()
        due = await self.storage.read(lambda tx: tx.reviews.overdue(now, EXPIRED_AT_ONCE))
        failure: Exception | None = None
        for each in due:
            try:
                await self._expire(each, now)
            except Exception as error:  # noqa: BLE001 - one that cannot be expired must not keep the others
                failure = error
        if failure is not None:
            raise failure
        return len(due) == EXPIRED_AT_ONCE

    async def _expire(self, overdue: Review, now: Instant) -> None:
        async def work(tx: Transaction) -> None:
            execution, found = await _locked(tx, await _known(tx, overdue.id, None))
            if execution is None or not found.is_open:
                return
            expired = replace(
                found,
                state=ReviewState.EXPIRED,
                value=found.default_value,
                decided_by=NOBODY,
                decided_at=now,
            )
            await _decided(tx, execution, expired, now)

        await self._in_order(work)

    async def _in_order(self, work: Work[T]) -> T:
        while True:
            with suppress(_AskedByAnother):
                return await self.storage.transact(work)


class _AskedByAnother(Exception):
    """A job began to wait for a review between two looks at it: begin again, and lock that job first."""


async def _locked(tx: Transaction, asked: Review) -> tuple[Execution | None, Review]:
    """Job, execution, reviews: the order of whoever cancels the run. The review again, as nobody can decide it now."""
    if asked.job_id is not None:
        await tx.reviews.lock_asker(asked.job_id)
    execution = await tx.executions.lock_run(asked.run_id)
    found = await _known(tx, asked.id, None)
    if found.job_id != asked.job_id:
        raise _AskedByAnother
    return execution, found


async def _decided(tx: Transaction, execution: Execution, review: Review, now: Instant) -> Review:
    """Of an execution that the caller has locked: it goes on when the last of its reviews is decided."""
    await tx.reviews.decide(review)
    if execution.status is not ExecutionStatus.WAITING:
        return review
    reviews = await tx.reviews.of_run(review.run_id)
    if (end := end_by(review)) is not None:
        await tx.executions.end(execution.claim, failed(*end), now=now)
        await tx.reviews.withdraw(review.run_id, reason=f"review {review.id}, which ended its run", now=now)
    elif any(each.is_open for each in reviews):
        return review
    else:
        await tx.executions.reply(review.run_id, reply_of(reviews))
    if review.job_id is not None:
        await tx.reviews.wake(review.job_id, now)
    return review


def _as_decided(review: Review, decision: Decision, now: Instant) -> Review:
    return replace(
        review,
        state=decision.state,
        value=value_text(decision.value, field="value"),
        note=decision.note,
        decided_by=text_of(decision.by, field="by"),
        decided_at=now,
        decision_key=decision.key,
    )


async def _known(tx: Transaction, review_id: str, owner: str | None) -> Review:
    """Somebody else's does not exist."""
    review = await tx.reviews.get(text_of(review_id, field="review_id"))
    if review is None or owner not in (None, review.owner):
        raise UnknownReview(review_id)
    return review


async def _require_not_replayed(tx: Transaction, delivery: Delivery, asked: Review, now: Instant) -> None:
    await tx.reviews.forget_deliveries(Instant(now - _KEPT_DELIVERIES_US))
    first = await tx.reviews.note_delivery(delivery.source, delivery.id, asked.id, now)
    if first != asked.id:
        raise DeliveryReplayed(delivery.source, delivery.id, first)
