"""What cannot be done with a workflow, and why."""

from duly.domain.errors import Conflict, NotFound


class UnknownWorkflow(NotFound):
    code = "unknown_workflow"

    def __init__(self, name: str, version: int | None = None) -> None:
        which = "" if version is None else f", version {version}"
        super().__init__(f"there is no workflow {name!r}{which}")
        self.name = name
        self.version = version


class WorkflowTaken(Conflict):
    """The name, or the id of a schedule that it would have, is somebody else's."""

    code = "workflow_taken"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is taken; choose another name")


class VersionTaken(Conflict):
    """A version that is stored never changes."""

    code = "workflow_version_taken"

    def __init__(self, name: str, version: int, newest: int) -> None:
        super().__init__(
            f"version {version} of workflow {name!r} is not the next: the newest is {newest}, and another document"
        )
        self.newest = newest


class NotDeployed(Conflict):
    code = "workflow_not_deployed"

    def __init__(self, name: str) -> None:
        super().__init__(f"workflow {name!r} is no longer deployed; deploy it again, or name a version")


class LateCallBack(Conflict):
    """The run is over, or was never to be called back about."""

    code = "late_call_back"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} waits for no call-back")
