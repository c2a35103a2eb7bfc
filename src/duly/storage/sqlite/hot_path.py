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
        await x.each("count_claimed", list(Counter(job.pool for job in claimed).items()))
        started = sum(job.state == JobState.RUNNING for job in claimed)
        if started:
            await x.fetch("count_started", id=order.session, started=started)
        if begun := [(job.ledger_run,) for job in claimed if job.ledger_run and job.state == JobState.RUNNING]:
            await x.each("begin_runs", begun, now=order.now)
        return claimed

    async def _rested(self, x: Executor, order: ClaimOrder) -> Sequence[Row]:
        """A claim that finds nothing writes nothing: its commit would wake other processes, to find nothing, too."""
        if order.ended:
            return await x.fetch("rest_session", session=order.session, ended=order.ended)
        return await x.fetch("lock_session", id=order.session)
