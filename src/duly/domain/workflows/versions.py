"""Workflows as they are stored: their versions, the schedules that run them, the runs that were asked for."""

from dataclasses import dataclass, field
from typing import NamedTuple

from duly.domain.ids import Owner, ScheduleId
from duly.domain.instants import Instant
from duly.domain.payloads import Payload, value_of
from duly.domain.workflows.documents import plan_of
from duly.domain.workflows.names import graph_id_of, launch_key
from duly.domain.workflows.plans import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """`deployed`: whether its name starts runs. Its versions stay when it no longer is."""

    name: str
    owner: Owner
    newest: int
    deployed: bool
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowVersion:
    """Never changed and never deleted: runs name it."""

    name: str
    version: int
    owner: Owner
    hash: str
    document: Payload
    created_at: Instant

    @property
    def plan(self) -> Plan:
        return plan_of(value_of(self.document))

    @property
    def graph_id(self) -> str:
        return graph_id_of(self.name, self.version)


class Bound(NamedTuple):
    """A schedule that runs a workflow: for a trigger of its document, or upserted by somebody (no trigger)."""

    schedule_id: ScheduleId
    owner: Owner
    workflow: str
    trigger: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A run that an owner asked for under a key: one execution, whoever asks for it again."""

    key: str
    owner: Owner
    workflow: str
    version: int
    scheduled_for: Instant | None
    job_id: str
    request_hash: str = field(repr=False)
    created_at: Instant

    @property
    def execution_key(self) -> str:
        """Of its owner alone: nobody can take the key of another's run, or of a slot."""
        return launch_key(self.owner, self.key)
