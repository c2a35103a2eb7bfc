"""Ending and claiming on SQLite: several cheap statements, because nothing can come between them."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from duly.domain.ids import SessionId
from duly.domain.instants import Instant
from duly.domain.jobs import JobState
from duly.domain.sessions import ClaimedJob, SessionLost
from duly.storage.executor import Executor, Row
from duly.storage.sql.claims import ClaimOrder, are_alike


class SqliteHotPath:
    async def lock_pools(self, x: Executor, names: Iterable[str]) -> None:
        """There is one writer: everything is locked."""

    async def finish(self, x: Executor, session: SessionId, reports: Sequence[Row], now: Instant) -> Sequence[Row]:
        if are_alike(reports):
            _, token, status, *_ = reports[0]
            ids = json.dumps([report[0] for report in reports])
            await x.fetch("record_alike", ids=ids, session=session, token=token, now=now, status=status)
            return await x.fetch("finish_alike", ids=ids, session=session, token=token)
        await x.each("record_finished", reports, session=session, now=now)
        return await x.each("finish", [report[:2] for report in reports], session=session)

    async def claim(self, x: Executor, order: ClaimOrder, wanted: Sequence[tuple[str, int]]) -> Sequence[ClaimedJob]:
        if not await self._rested(x, order):
            raise SessionLost(order.session)
        rows = await x.each(
            "claim", wanted, session=order.session, token=order.token, now=order.now, state=order.state.value
        )
        claimed = [ClaimedJob._make(row) for row in rows]
        if len(claimed) < sum(count for _, count in wanted):
            order.by_share = {name for (name,) in await x.fetch("pools_with_shares")} & {name for name, _ in wanted}
        await self._count(x, order, claimed)
        return claimed

    async def claim_by_share(
        self, x: Executor, order: ClaimOrder, wanted: Sequence[tuple[str, int]]
    ) -> Sequence[ClaimedJob]:
        picked = [(job_id,) for pool, count in wanted for job_id in await self._best(x, pool, count)]
        rows = await x.each(
            "claim_these", picked, session=order.session, token=order.token, now=order.now, state=order.state.value
        )
        claimed = [ClaimedJob._make(row) for row in rows]
        await self._count(x, order, claimed)
        return claimed

    async def _best(self, x: Executor, pool: str, wanted: int) -> list[str]:
        """Of each share the best jobs, as many as it has left, and of those the best in the pool's order."""
        for free, per_owner in await x.fetch("room_of_shares", pool=pool, wanted=wanted):
            used: dict[str, int] = dict(await x.fetch("shares_used", pool=pool))
            best: list[Row] = []
            for (share,) in await x.fetch("shares_ready", pool=pool) if free > 0 else ():
                left = min(free, per_owner - used.get(share, 0))
                if left > 0:
                    best += await x.fetch("ready_of_share", pool=pool, share=share, most=left)
            return [row[3] for row in sorted(best)[: max(free, 0)]]
        return []

    async def _count(self, x: Executor, order: ClaimOrder, claimed: Sequence[ClaimedJob]) -> None:
        await x.each("count_claimed", list(Counter(job.pool for job in claimed).items()))
        started = sum(job.state == JobState.RUNNING for job in claimed)
        if started:
            await x.fetch("count_started", id=order.session, started=started)
        if begun := [(job.ledger_run,) for job in claimed if job.ledger_run and job.state == JobState.RUNNING]:
            await x.each("begin_runs", begun, now=order.now)

    async def _rested(self, x: Executor, order: ClaimOrder) -> Sequence[Row]:
        """A claim that finds nothing writes nothing: its commit would wake other processes, to find nothing, too."""
        if order.ended:
            return await x.fetch("rest_session", session=order.session, ended=order.ended)
        return await x.fetch("lock_session", id=order.session)
