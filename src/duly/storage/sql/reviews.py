"""Reviews in SQL."""

from collections.abc import Sequence

from duly.domain.executions import Silence
from duly.domain.ids import JobId, Owner
from duly.domain.instants import Instant
from duly.domain.reviews import Review, ReviewKind, ReviewState
from duly.storage.executor import Executor, Row
from duly.storage.sql.rows import PAST_EVERY_ID
from duly.storage.sql.topics import DUE, REVIEWS, execution_topic


class SqlReviews:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, reviews: Sequence[Review]) -> None:
        for each in reviews:
            await self._x.fetch(
                "insert_review",
                id=each.id,
                run_id=each.run_id,
                attempt=each.attempt,
                owner=each.owner,
                graph_id=each.graph_id,
                kind=each.kind.value,
                question_id=each.question_id,
                question=each.question,
                created_at=each.created_at,
                deadline=each.deadline,
                on_silence=each.default.value,
                silent_value=each.default_value,
            )
        self._x.wake(REVIEWS)

    async def get(self, review_id: str) -> Review | None:
        rows = await self._x.fetch("review_by_id", id=review_id)
        return _from_row(rows[0]) if rows else None

    async def of_run(self, run_id: str) -> list[Review]:
        return [_from_row(row) for row in await self._x.fetch("reviews_of_run", run_id=run_id)]

    async def newest(
        self, owner: Owner | None, *, state: ReviewState | None, before: str | None, most: int
    ) -> list[Review]:
        whose = {} if owner is None else {"owner": owner}
        which = {} if state is None else {"state": state.value}
        statement = "newest_reviews" + ("_of_owner" if whose else "") + ("_by_state" if which else "")
        rows = await self._x.fetch(statement, **whose, **which, before=before or PAST_EVERY_ID, most=most)
        return [_from_row(row) for row in rows]

    async def overdue(self, now: Instant, most: int) -> list[Review]:
        return [_from_row(row) for row in await self._x.fetch("overdue_reviews", now=now, most=most)]

    async def decide(self, decided: Review) -> bool:
        rows = await self._x.fetch(
            "decide_review",
            id=decided.id,
            state=decided.state.value,
            value=decided.value,
            note=decided.note,
            decided_by=decided.decided_by,
            decision_key=decided.decision_key,
            now=decided.decided_at,
        )
        self._x.wake(REVIEWS)
        return bool(rows)

    async def withdraw(self, run_id: str, *, reason: str, now: Instant) -> None:
        await self._x.fetch("withdraw_reviews", run_id=run_id, reason=reason, now=now)
        self._x.wake(REVIEWS)

    async def attach(self, run_id: str, job_id: JobId) -> None:
        await self._x.fetch("attach_reviews", run_id=run_id, job_id=job_id)

    async def are_awaited_by(self, job_id: JobId) -> bool:
        return bool(await self._x.fetch("runs_waiting_with", job_id=job_id))

    async def wake(self, job_id: JobId, now: Instant) -> None:
        if await self._x.fetch("wake_job", id=job_id, now=now):
            self._x.wake(DUE)

    async def note_delivery(self, source: str, delivery_id: str, now: Instant) -> bool:
        return bool(await self._x.fetch("note_delivery", source=source, delivery_id=delivery_id, now=now))

    async def forget_deliveries(self, before: Instant) -> None:
        await self._x.fetch("forget_deliveries", before=before)


async def withdraw_with(x: Executor, job_id: JobId, *, reason: str, now: Instant) -> None:
    """A job that waited for reviews ends before they are decided: so do they, and the execution they were for."""
    for (run_id,) in await x.fetch("runs_waiting_with", job_id=job_id):
        await x.fetch("cancel_waiting_execution", run_id=run_id, reason=reason, now=now)
        await x.fetch("withdraw_reviews", run_id=run_id, reason=reason, now=now)
        x.wake(REVIEWS)
        x.wake(execution_topic(run_id))


def _from_row(row: Row) -> Review:
    return Review(
        id=row[0],
        run_id=row[1],
        attempt=row[2],
        owner=row[3],
        graph_id=row[4],
        kind=ReviewKind(row[5]),
        question_id=row[6],
        question=row[7],
        created_at=row[8],
        deadline=row[9],
        default=Silence(row[10]),
        default_value=row[11],
        state=ReviewState(row[12]),
        value=row[13],
        note=row[14],
        decided_by=row[15],
        decided_at=row[16],
        decision_key=row[17],
        job_id=row[18],
    )
