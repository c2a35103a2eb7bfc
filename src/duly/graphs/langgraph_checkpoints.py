"""Keeps a LangGraph run's checkpoints in Duly's own store, behind the token of the attempt that writes them."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from duly.application.checkpoints import Checkpoints
from duly.domain.checkpoints import CheckpointName, PendingWrite, SavedCheckpoint
from duly.ports.graphs import GraphCall


class DulySaver(BaseCheckpointSaver[int]):
    """For one attempt of one run: what a fenced attempt would write is refused."""

    def __init__(self, checkpoints: Checkpoints, call: GraphCall) -> None:
        super().__init__()
        self._checkpoints = checkpoints
        self._call = call

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        name = _name_of(config, get_checkpoint_id(config))
        saved = await self._checkpoints.get(name)
        return None if saved is None else self._tuple(saved)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the interface's word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Newest first."""
        if config is None:
            return
        last = None if before is None else get_checkpoint_id(before)
        for saved in await self._checkpoints.list(_name_of(config, last), most=limit or 1_000):
            found = self._tuple(saved)
            if all(found.metadata.get(name) == value for name, value in (filter or {}).items()):
                yield found

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, _: ChannelVersions
    ) -> RunnableConfig:
        kind, state = self.serde.dumps_typed(checkpoint)
        about_kind, about = self.serde.dumps_typed(get_checkpoint_metadata(config, metadata))
        saved = SavedCheckpoint(
            name=_name_of(config, checkpoint["id"]),
            parent_id=get_checkpoint_id(config),
            kind=kind,
            state=state,
            about_kind=about_kind,
            about=about,
        )
        await self._checkpoints.put(saved, attempt=self._call.attempt, token=self._call.token)
        return _config_of(saved.name)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        pending = [
            PendingWrite(
                task_id, WRITES_IDX_MAP.get(channel, place), task_path, channel, *self.serde.dumps_typed(value)
            )
            for place, (channel, value) in enumerate(writes)
        ]
        name = _name_of(config, get_checkpoint_id(config))
        await self._checkpoints.put_writes(name, pending, attempt=self._call.attempt, token=self._call.token)

    def _tuple(self, saved: SavedCheckpoint) -> CheckpointTuple:
        name, parent = saved.name, saved.parent_id
        return CheckpointTuple(
            config=_config_of(name),
            checkpoint=self.serde.loads_typed((saved.kind, saved.state)),
            metadata=self.serde.loads_typed((saved.about_kind, saved.about)),
            parent_config=None if parent is None else _config_of(name._replace(checkpoint_id=parent)),
            pending_writes=[
                (each.task_id, each.channel, self.serde.loads_typed((each.kind, each.value))) for each in saved.writes
            ],
        )


def _name_of(config: RunnableConfig, checkpoint_id: str | None) -> CheckpointName:
    where = config["configurable"]
    return CheckpointName(where["thread_id"], where.get("checkpoint_ns", ""), checkpoint_id)


def _config_of(name: CheckpointName) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": name.run_id,
            "checkpoint_ns": name.namespace,
            "checkpoint_id": name.checkpoint_id,
        }
    }
