"""Ending and claiming on Postgres: one statement each, because every statement is a round trip."""

from collections.abc import Iterable, Sequence

from duly.domain.ids import SessionId
from duly.domain.instants import Instant
from duly.domain.sessions import ClaimedJob, SessionLost
from duly.storage.executor import Executor, Row
from duly.storage.sql.claims import ClaimOrder, are_alike


class PostgresHotPath:
    async def lock_pools(self, x: Executor, names: Iterable[str]) -> None:
        await x.each("lock_pools", [(name,) for name in names])

    async def finish(self, x: Executor, session: SessionId, reports: Sequence[Row], now: Instant) -> Sequence[Row]:
        if are_alike(reports):
            _, token, status, *_ = reports[0]
            ids = [row[:1] for row in reports]
            return await x.each("finish_alike", ids, session=session, now=now, token=token, status=status)
        return await x.each("finish", reports, session=session, now=now)

    async def claim(self, x: Executor, order: ClaimOrder, wanted: Sequence[tuple[str, int]]) -> Sequence[ClaimedJob]:
        if not wanted:
            return await self._claim_nothing(x, order.session)
        rows = await x.each(
            "claim",
            wanted,
            session=order.session,
            token=order.token,
            now=order.now,
            state=order.state.value,
            ended=order.ended,
        )
        if not rows:
            raise SessionLost(order.session)
        claimed = [ClaimedJob._make(row) for row in rows if row[0] is not None]
        if len(claimed) < len(rows):
            order.by_share = {row[5] for row in rows if row[0] is None and row[5] is not None}
        return claimed

    async def claim_by_share(
        self, x: Executor, order: ClaimOrder, wanted: Sequence[tuple[str, int]]
    ) -> Sequence[ClaimedJob]:
        await self.lock_pools(x, sorted(name for name, _ in wanted))
        rows = await x.each(
            "claim_by_share",
            wanted,
            session=order.session,
            token=order.token,
            now=order.now,
            state=order.state.value,
        )
        return [ClaimedJob._make(row) for row in rows]

    async def _claim_nothing(self, x: Executor, session: SessionId) -> Sequence[ClaimedJob]:
        """A statement of no rows would answer none, which means that the session is gone."""
        if not await x.fetch("lock_session", id=session):
            raise SessionLost(session)
        return []
