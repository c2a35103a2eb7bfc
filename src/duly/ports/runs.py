"""Runs as callers look for them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from duly.domain.ids import Owner, RunId, ScheduleId
from duly.domain.runs import Run, RunKind, RunStatus


class RunsAsked(NamedTuple):
    """Which runs; what is None is not asked about. A schedule's runs are its owner's."""

    owner: Owner | None = None
    schedule_id: ScheduleId | None = None
    status: RunStatus | None = None
    kind: RunKind | None = None


class RunStore(Protocol):
    async def newest(self, asked: RunsAsked, *, before: RunId | None, most: int) -> list[Run]:
        """In order of id, the last drawn first."""

    async def note_execution(self, run_id: RunId, *, execution: str, trace_id: str | None) -> None:
        """The first stands."""

    async def last_of(self, schedule_ids: Sequence[ScheduleId]) -> Mapping[ScheduleId, Run]:
        """Of each schedule the newest slot that runs, ran, or could not be launched; none of those that have none."""
