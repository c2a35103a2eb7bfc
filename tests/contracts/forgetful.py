"""A store whose answers are lost: every work is run again after it was committed."""

from duly.bootstrap import Queue
from duly.ports.storage import Work
from duly.settings import Settings
from tests.contracts.world import FREE, ClockedStorage, T, World


class Twice(ClockedStorage):
    """Commits, loses the answer, and runs the same work again."""

    async def transact(self, work: Work[T], *, single: bool = False) -> T:
        await self.inner.transact(work, single=single)
        return await self.inner.transact(work, single=single)


def forgetful(world: World) -> Queue:
    storage = Twice(world.queue.storage, world.clock)
    return Queue.on(storage, world.dice, Settings(database_url=world.place, free_models=FREE))
