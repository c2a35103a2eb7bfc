"""Workflows as a store keeps them: versions that never change, and what became of each node of a run."""

from collections.abc import Collection, Sequence
from typing import Protocol

from duly.domain.ids import Owner, ScheduleId
from duly.domain.instants import Instant
from duly.domain.workflows import Bound, CallBack, DagRun, Launch, NodeRun, Workflow, WorkflowVersion


class WorkflowStore(Protocol):
    async def add(self, workflow: Workflow) -> bool:
        """Whether its name was free."""

    async def get(self, name: str) -> Workflow | None: ...

    async def lock(self, name: str) -> Workflow | None:
        """Kept from changing until commit."""

    async def save(self, workflow: Workflow) -> None:
        """Which version is the newest, and whether it is deployed."""

    async def listed(self, owner: Owner | None, *, after: str, most: int) -> list[Workflow]:
        """In order of name; everybody's if no owner is named."""

    async def add_version(self, version: WorkflowVersion) -> None:
        """A number that is taken is the same version, added again."""

    async def version(self, name: str, version: int) -> WorkflowVersion | None: ...

    async def versions(self, name: str, *, before: int, most: int) -> list[WorkflowVersion]:
        """The newest first."""

    async def bind(self, bound: Bound) -> None:
        """A schedule runs this workflow from now on."""

    async def unbind(self, schedule_id: ScheduleId) -> None: ...

    async def bound(self, schedule_id: ScheduleId) -> Bound | None: ...

    async def bound_to(self, workflow: str) -> list[Bound]:
        """In order of schedule."""

    async def register_actions(self, owner: Owner, program: str, names: Collection[str]) -> None:
        """What a program has registered, in place of what it had."""

    async def actions(self) -> set[str]:
        """What any program has registered."""

    async def add_launch(self, launch: Launch) -> bool:
        """Whether its key was free."""

    async def launch(self, execution_key: str) -> Launch | None: ...

    async def pin(self, run: DagRun) -> DagRun:
        """Which version a run is: the first that was said stands."""

    async def run(self, run_id: str) -> DagRun | None: ...

    async def runs(self, workflow: str, *, before: str | None, most: int) -> list[DagRun]:
        """The last begun first."""

    async def forget_nodes(self, run_id: str) -> None: ...

    async def save_nodes(self, nodes: Sequence[NodeRun]) -> None:
        """One that has succeeded stays as it is."""

    async def nodes(self, run_id: str) -> list[NodeRun]: ...

    async def accept(self, run_id: str, now: Instant) -> None:
        """An executor elsewhere has taken the run; the first time stands."""

    async def is_accepted(self, run_id: str) -> bool: ...

    async def call_back(self, run_id: str, said: CallBack) -> bool:
        """Whether it was the first end that was said; what comes after an end changes nothing."""

    async def called_back(self, run_id: str) -> CallBack | None: ...
