"""Pools as a store keeps them."""

from typing import Protocol

from duly.domain.ids import PoolName
from duly.domain.pools import Pool


class PoolStore(Protocol):
    async def get(self, name: PoolName) -> Pool | None: ...

    async def lock(self, name: PoolName) -> Pool | None:
        """The pool, kept from changing until commit."""

    async def all(self) -> list[Pool]: ...

    async def save(self, pool: Pool) -> None:
        """Defines a pool or changes its settings; what is used of it stays. A lowered limit stops claims, not runs."""

    async def remove(self, name: PoolName) -> None:
        """Forgets a pool that has no live job and no ticket."""
