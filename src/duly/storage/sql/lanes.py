"""The lane law: if a lane has a due job, exactly one job of it is head.

On Postgres the head's own row is the lane's lock. Whoever leaves a waiting job behind holds the head's row until
commit, so the head cannot end unseen; whoever ends a head looks for waiting jobs in a later statement, so it sees
every job whose putter it had to wait for.
"""

from collections.abc import Iterable

from duly.domain.errors import Unavailable
from duly.storage.executor import Executor
from duly.storage.sql.topics import pool_topic

_MOST_ROUNDS = 100


class Lanes:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def promote(self, lanes: Iterable[str]) -> set[str]:
        """Gives each lane that has no head its best waiting job, if any; answers the lanes that got one."""
        rows = await self._x.each("promote", [(lane,) for lane in sorted(set(lanes))])
        for _, pool in rows:
            self._x.wake(pool_topic(pool))
        return {lane for lane, _ in rows}

    async def join(self, lanes: Iterable[str]) -> None:
        """Call after leaving waiting jobs in these lanes: each ends with the right head, held until commit."""
        names = sorted(set(lanes))
        # Before heads are held: two that hold one head and both want it to step back would wait for each other.
        await self.reorder(names)
        without_head = names
        for _ in range(_MOST_ROUNDS):
            held = await self._x.each("hold_heads", [(lane,) for lane in without_head])
            without_head = [lane for lane in without_head if (lane,) not in {tuple(row) for row in held}]
            promoted = await self.promote(without_head) if without_head else set()
            without_head = [lane for lane in without_head if lane not in promoted]
            if not without_head:
                await self.reorder(names)
                return
        raise Unavailable(f"lane {without_head[0]!r} changes hands too fast; try again")

    async def leave(self, lanes: Iterable[str]) -> None:
        """Call after a head, whose row was locked, left these lanes."""
        names = set(lanes)
        if names:
            await self.promote(names)

    async def step_back(self, lanes: Iterable[str | None]) -> None:
        """Call after heads became unclaimed: a better job may have come while they could not be displaced."""
        names = {lane for lane in lanes if lane}
        if names:
            await self.reorder(names)

    async def reorder(self, lanes: Iterable[str]) -> None:
        """An unclaimed head steps back where a better job waits behind it."""
        for (lane,) in await self._x.each("misordered", [(lane,) for lane in sorted(set(lanes))]):
            for head, _ in await self._x.fetch("head_of_lane_locked", lane=lane):
                await self._x.fetch("demote", id=head)
            await self.promote([lane])
