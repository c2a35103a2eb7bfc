"""Keeps what graphs leave to go on from; only the attempt that stands may add to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from duly.domain.checkpoints import CheckpointName, PendingWrite, SavedCheckpoint
from duly.domain.executions import LeaseLost
from duly.ports.storage import Storage, Transaction


@dataclass(frozen=True, slots=True)
class Checkpoints:
    storage: Storage

    async def put(self, saved: SavedCheckpoint, *, attempt: int, token: int) -> None:
        """Raises LeaseLost if somebody else has taken over."""

        async def work(tx: Transaction) -> None:
            await _require_standing(tx, saved.name.run_id, attempt, token)
            await tx.checkpoints.add(saved)

        await self.storage.transact(work)

    async def put_writes(
        self, name: CheckpointName, writes: Sequence[PendingWrite], *, attempt: int, token: int
    ) -> None:
        """Raises LeaseLost if somebody else has taken over."""

        async def work(tx: Transaction) -> None:
            await _require_standing(tx, name.run_id, attempt, token)
            await tx.checkpoints.add_writes(name, writes)

        await self.storage.transact(work)

    async def get(self, name: CheckpointName) -> SavedCheckpoint | None:
        """The one that is named, else the newest."""
        return await self.storage.read(lambda tx: tx.checkpoints.get(name))

    async def list(self, name: CheckpointName, *, most: int) -> Sequence[SavedCheckpoint]:
        """Newest first, before the one that is named."""
        return await self.storage.read(lambda tx: tx.checkpoints.before(name, most))


async def _require_standing(tx: Transaction, run_id: str, attempt: int, token: int) -> None:
    if not await tx.executions.stands(run_id, token):
        raise LeaseLost(run_id, attempt)
