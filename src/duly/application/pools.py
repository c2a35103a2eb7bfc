"""What owners do with pools: define limits, pause, drain, open."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from duly.domain.ids import PoolName
from duly.domain.pools import Pool, PoolMode, UnknownPool
from duly.ports.storage import Storage, Transaction


@dataclass(frozen=True, slots=True)
class Pools:
    storage: Storage

    async def define(self, pool: Pool) -> Pool:
        """Creates a pool or changes its settings; what is used of it stays."""

        async def work(tx: Transaction) -> Pool:
            await tx.pools.save(pool)
            return pool

        return await self.storage.transact(work)

    async def declare(self, pool: Pool) -> Pool:
        """Like `define`, but a pool that people paused or drain stays so, and one that is so already is not touched."""

        async def work(tx: Transaction) -> Pool:
            there = await tx.pools.lock(pool.name)
            wanted = pool if there is None else replace(pool, mode=there.mode, used=there.used, tickets=there.tickets)
            if wanted != there:
                await tx.pools.save(wanted)
            return wanted

        return await self.storage.transact(work)

    async def get(self, name: PoolName) -> Pool:
        return await self.storage.read(lambda tx: _found(tx, name))

    async def all(self) -> list[Pool]:
        async def work(tx: Transaction) -> list[Pool]:
            return await tx.pools.all()

        return await self.storage.read(work)

    async def pause(self, name: PoolName) -> Pool:
        """Takes new jobs, starts none; what runs goes on."""
        return await self._set_mode(name, PoolMode.PAUSED)

    async def drain(self, name: PoolName) -> Pool:
        """Takes no new jobs, runs those it has."""
        return await self._set_mode(name, PoolMode.DRAINING)

    async def open(self, name: PoolName) -> Pool:
        return await self._set_mode(name, PoolMode.OPEN)

    async def change(self, name: PoolName, **changes: Any) -> Pool:
        """Changes what is given of a pool that is there; what is used of it stays."""
        return await self._changed(name, changes)

    async def remove(self, name: PoolName) -> None:
        is_found = False

        async def work(tx: Transaction) -> None:
            nonlocal is_found
            # An earlier run of this work, whose answer was lost, may have removed it.
            if is_found and await tx.pools.get(name) is None:
                return
            await tx.pools.remove(name)
            is_found = True

        await self.storage.transact(work)

    async def _set_mode(self, name: PoolName, mode: PoolMode) -> Pool:
        return await self._changed(name, {"mode": mode})

    async def _changed(self, name: PoolName, changes: Mapping[str, Any]) -> Pool:
        async def work(tx: Transaction) -> Pool:
            pool = replace(_known(await tx.pools.lock(name), name), **changes)
            await tx.pools.save(pool)
            return pool

        return await self.storage.transact(work)


async def _found(tx: Transaction, name: PoolName) -> Pool:
    return _known(await tx.pools.get(name), name)


def _known(pool: Pool | None, name: PoolName) -> Pool:
    if pool is None:
        raise UnknownPool(name)
    return pool
