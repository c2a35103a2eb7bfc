"""Checkpoints of graphs as a store keeps them."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.checkpoints import CheckpointName, PendingWrite, SavedCheckpoint


class CheckpointStore(Protocol):
    async def add(self, saved: SavedCheckpoint) -> None:
        """In place of one of the same name."""

    async def add_writes(self, name: CheckpointName, writes: Sequence[PendingWrite]) -> None:
        """The first write of a place stands, unless the place is below zero."""

    async def get(self, name: CheckpointName) -> SavedCheckpoint | None:
        """With what was written after it; the newest if none is named."""

    async def before(self, name: CheckpointName, most: int) -> list[SavedCheckpoint]:
        """Newest first."""

    async def forget(self, run_id: str) -> None:
        """All of a run."""
