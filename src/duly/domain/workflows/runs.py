"""What became of a run of a workflow, node by node, and what an executor elsewhere said of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.payloads import Payload


class NodeState(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """What became of a node in a run; `tries` counts those that were begun, through all attempts."""

    run_id: str
    node: str
    owner: Owner
    state: NodeState
    tries: int = 0
    result: Payload | None = None
    error_code: str | None = None
    error: str | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DagRun:
    """Which version an execution runs, from its first attempt to its last."""

    run_id: str
    owner: Owner
    workflow: str
    version: int
    begun_at: Instant


class CalledBack(StrEnum):
    STARTED = "STARTED"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


class CallBack(NamedTuple):
    """What an executor elsewhere said last; `value` is its result, or why it failed."""

    status: CalledBack
    value: Payload | None = None
