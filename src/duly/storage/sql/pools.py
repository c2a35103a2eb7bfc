"""Pools in SQL."""

from duly.domain.ids import PoolName
from duly.domain.pools import Pool, PoolInUse, UnknownPool
from duly.storage.executor import Executor
from duly.storage.sql.claims import Claims
from duly.storage.sql.lanes import Lanes
from duly.storage.sql.rows import pool_from_row
from duly.storage.sql.topics import TICKET, pool_topic


class SqlPools:
    __slots__ = ("_claims", "_x")

    def __init__(self, executor: Executor, claims: Claims) -> None:
        self._x = executor
        self._claims = claims

    async def get(self, name: PoolName) -> Pool | None:
        for row in await self._x.fetch("pool_by_name", name=name):
            return pool_from_row(row)
        return None

    async def lock(self, name: PoolName) -> Pool | None:
        for row in await self._x.fetch("lock_pool_alone", name=name):
            return pool_from_row(row)
        return None

    async def all(self) -> list[Pool]:
        return [pool_from_row(row) for row in await self._x.fetch("all_pools")]

    async def save(self, pool: Pool) -> None:
        before = await self._x.fetch("lock_pool_alone", name=pool.name)
        await self._x.fetch(
            "save_pool",
            name=pool.name,
            slots=pool.slots,
            mode=pool.mode.value,
            prefetch=pool.prefetch,
            ageing_ms=pool.ageing_ms,
            per_owner=pool.per_owner,
        )
        if before and (pool_from_row(before[0]).per_owner is None) != (pool.per_owner is None):
            await self._x.fetch("name_shares_of_pool", name=pool.name)
        if before and pool_from_row(before[0]).ageing_ms != pool.ageing_ms:
            await self._rerank(pool.name)
        await self._claims.unpark([pool.name])
        self._x.wake(pool_topic(pool.name))
        self._x.wake(TICKET)

    async def _rerank(self, name: PoolName) -> None:
        await self._x.fetch("rerank_pool", name=name)
        lanes = await self._x.fetch("lanes_of_pool", name=name)
        await Lanes(self._x).reorder(lane for (lane,) in lanes)

    async def remove(self, name: PoolName) -> None:
        if not await self._x.fetch("lock_pool_alone", name=name):
            raise UnknownPool(name)
        ((is_empty,),) = await self._x.fetch("pool_is_empty", name=name)
        if not is_empty:
            raise PoolInUse(name)
        await self._x.fetch("remove_pool", name=name)
