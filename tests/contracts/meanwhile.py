"""A store on which something else happens between what somebody reads and what it does with that."""

from collections.abc import Awaitable, Callable

from duly.bootstrap import Queue
from duly.ports.storage import Storage, Work
from duly.settings import Settings
from tests.contracts.world import ClockedStorage, T, World


class Meanwhile(ClockedStorage):
    """After the next read, and before its reader hears of it, `happens`."""

    def __init__(self, inner: Storage, world: World) -> None:
        super().__init__(inner, world.clock)
        self.happens: Callable[[], Awaitable[object]] | None = None

    async def read(self, work: Work[T]) -> T:
        found = await self.inner.read(work)
        happens, self.happens = self.happens, None
        if happens is not None:
            await happens()
        return found


def interrupted(world: World) -> tuple[Queue, Meanwhile]:
    storage = Meanwhile(world.queue.storage, world)
    return Queue.on(storage, world.dice, Settings(database_url=world.place)), storage
