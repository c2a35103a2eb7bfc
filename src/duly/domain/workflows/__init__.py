"""A workflow: a name with numbered versions, each a document that says which actions run, in which order, and when."""

from duly.domain.workflows.documents import plan_of
from duly.domain.workflows.names import (
    MOST_VERSIONS,
    launch_key,
    name_of,
    named_by,
    run_key,
    schedule_id_of,
    version_of,
)
from duly.domain.workflows.plans import Elsewhere, Plan, Trigger
from duly.domain.workflows.refusals import LateCallBack, NotDeployed, UnknownWorkflow, VersionTaken, WorkflowTaken
from duly.domain.workflows.runs import CallBack, CalledBack, DagRun, NodeRun, NodeState
from duly.domain.workflows.triggers import cron_of
from duly.domain.workflows.versions import Bound, Launch, Workflow, WorkflowVersion

__all__ = [
    "MOST_VERSIONS",
    "Bound",
    "CallBack",
    "CalledBack",
    "DagRun",
    "Elsewhere",
    "LateCallBack",
    "Launch",
    "NodeRun",
    "NodeState",
    "NotDeployed",
    "Plan",
    "Trigger",
    "UnknownWorkflow",
    "VersionTaken",
    "Workflow",
    "WorkflowTaken",
    "WorkflowVersion",
    "cron_of",
    "launch_key",
    "name_of",
    "named_by",
    "plan_of",
    "run_key",
    "schedule_id_of",
    "version_of",
]
