"""Opens the reviews of an execution that begins to wait for people."""

from collections.abc import Sequence

from duly.domain.executions import Execution
from duly.domain.ids import GrantId, Owner
from duly.domain.instants import Instant
from duly.domain.reviews import ReviewKind, opened
from duly.ports.storage import Transaction


async def ask_in(tx: Transaction, waiting: Execution, kind: ReviewKind, ids: Sequence[str], now: Instant) -> None:
    grant = await tx.grants.get(GrantId(waiting.grant_id))
    if grant is not None:
        await tx.reviews.add(opened(waiting, kind, Owner(grant.user_id), ids, now))
