"""Checkpoints of graphs, in SQL."""

from collections.abc import Sequence

from duly.domain.checkpoints import CheckpointName, PendingWrite, SavedCheckpoint
from duly.storage.executor import Executor, Row
from duly.storage.sql.rows import PAST_EVERY_ID


class SqlCheckpoints:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, saved: SavedCheckpoint) -> None:
        await self._x.fetch(
            "save_checkpoint",
            parent_id=saved.parent_id,
            kind=saved.kind,
            state=saved.state,
            about_kind=saved.about_kind,
            about=saved.about,
            **saved.name._asdict(),
        )

    async def add_writes(self, name: CheckpointName, writes: Sequence[PendingWrite]) -> None:
        for write in writes:
            await self._x.fetch("save_checkpoint_write", **name._asdict(), **write._asdict())

    async def get(self, name: CheckpointName) -> SavedCheckpoint | None:
        if name.checkpoint_id is None:
            return next(iter(await self.before(name, 1)), None)
        for row in await self._x.fetch("checkpoint_by_name", **name._asdict()):
            return await self._with_writes(row)
        return None

    async def before(self, name: CheckpointName, most: int) -> list[SavedCheckpoint]:
        last = name._replace(checkpoint_id=name.checkpoint_id or PAST_EVERY_ID)
        rows = await self._x.fetch("checkpoints_before", **last._asdict(), most=most)
        return [await self._with_writes(row) for row in rows]

    async def forget(self, run_id: str) -> None:
        await self._x.fetch("forget_checkpoints", run_id=run_id)
        await self._x.fetch("forget_checkpoint_writes", run_id=run_id)

    async def _with_writes(self, row: Row) -> SavedCheckpoint:
        name = CheckpointName(*row[:3])
        writes = await self._x.fetch("checkpoint_writes_of", **name._asdict())
        return SavedCheckpoint(
            name=name,
            parent_id=row[3],
            kind=row[4],
            state=bytes(row[5]),
            about_kind=row[6],
            about=bytes(row[7]),
            writes=tuple(PendingWrite._make((*write[:5], bytes(write[5]))) for write in writes),
        )
