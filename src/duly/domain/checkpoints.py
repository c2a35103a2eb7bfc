"""Checkpoints: what a graph leaves so that a later attempt can go on from it. What is in them is the graph's."""

from dataclasses import dataclass
from typing import NamedTuple


class CheckpointName(NamedTuple):
    """Within a run, a graph and each of its subgraphs has a namespace; ids are in order of time."""

    run_id: str
    namespace: str
    checkpoint_id: str | None


class PendingWrite(NamedTuple):
    """What a task has written after a checkpoint; places below zero may be written again."""

    task_id: str
    place: int
    path: str
    channel: str
    kind: str
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCheckpoint:
    name: CheckpointName
    parent_id: str | None
    kind: str
    state: bytes
    about_kind: str
    about: bytes
    writes: tuple[PendingWrite, ...] = ()
