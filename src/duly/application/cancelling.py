"""Ends executions that nobody wants any more, and those whose call is still on its way."""

from dataclasses import dataclass

from duly.application.call_backs import lock_in_order, wake_waiting
from duly.application.money import end_in
from duly.domain.billing import HoldState, UnknownHold
from duly.domain.executions import (
    TOMBSTONE,
    Claim,
    ErrorCode,
    Execution,
    ExecutionRequest,
    ExecutionStatus,
    UnknownExecution,
    failed,
)
from duly.domain.grants import UnknownGrant
from duly.domain.ids import GrantId
from duly.domain.instants import Instant, Micros
from duly.ports.storage import Storage, Transaction

PRUNE_BATCH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelling:
    """`tombstone` is what is kept of a call that has not come yet; without one there must be an execution."""

    key: str
    reason: str
    graph_id: str | None
    grant_id: str | None
    tombstone: Execution | None
    now: Instant

    async def work(self, tx: Transaction) -> Execution:
        found = await lock_in_order(tx, await tx.executions.by_key(self.key))
        is_free = found is None or (found.is_tombstone and not self._means(found))
        if is_free and self.tombstone is not None:
            found = await _buried(tx, self.tombstone)
        if found is None or not self._means(found):
            raise UnknownExecution(self.key)
        if found.status is ExecutionStatus.DONE:
            return found
        await settle_in(tx, found.claim, HoldState.SETTLED, self.now)
        await tx.reviews.withdraw(found.run_id, reason=self.reason, now=self.now)
        await wake_waiting(tx, found, now=self.now)
        return await tx.executions.end(found.claim, failed(ErrorCode.CANCELLED, self.reason), now=self.now) or found

    def _means(self, found: Execution) -> bool:
        return self.graph_id in (None, found.graph_id) and self.grant_id in (None, found.grant_id)


def tombstone_of(
    key: str, graph_id: str, grant_id: str, *, reason: str, run_id: str, trace_id: str, era: str, now: Instant
) -> Execution:
    """Of a call that was cancelled before it came: what it asks for is not known, only for which graph and by whom."""
    ended = failed(ErrorCode.CANCELLED, reason)
    return Execution(
        key=key,
        request_hash=TOMBSTONE,
        request=ExecutionRequest(key=key, graph_id=graph_id, grant_id=grant_id, input={}).written,
        graph_id=graph_id,
        grant_id=grant_id,
        run_id=run_id,
        trace_id=trace_id,
        status=ExecutionStatus.DONE,
        ok=False,
        error_code=ended.error_code,
        error_message=ended.error_message,
        token=0,
        era=era,
        expires_at=Micros(0),
        created_at=now,
        completed_at=now,
    )


async def _buried(tx: Transaction, tombstone: Execution) -> Execution | None:
    """Under a grant that the call could be made with; one that was revoked meanwhile may still take it back."""
    grant = await tx.grants.get(GrantId(tombstone.grant_id))
    if grant is None:
        raise UnknownGrant(tombstone.grant_id)
    grant.require_covers(tombstone.graph_id)
    if await tx.executions.bury(tombstone):
        return tombstone
    return await tx.executions.lock_key(tombstone.key)  # its call came meanwhile, and is cancelled as such


async def prune_tombstones(storage: Storage, *, before: Instant) -> None:
    """A few in each transaction; whoever still calls after so long runs as if nothing had been said."""

    async def work(tx: Transaction) -> int:
        return await tx.executions.prune_tombstones(before, PRUNE_BATCH)

    while await storage.transact(work):
        pass


async def settle_in(tx: Transaction, claim: Claim, state: HoldState, now: Instant) -> None:
    try:
        await end_in(tx, claim.run_id, claim.attempt, state, now=now)
    except UnknownHold:
        return  # it ended before anything was held
