"""Why a thing is as it is: plain sentences, made of recorded facts and of nothing else."""

from duly.domain.explanations.explanation import Explanation
from duly.domain.explanations.facts import Explained, Fact, NothingKnown, Subject
from duly.domain.explanations.groups import GroupFacts, explain_group
from duly.domain.explanations.jobs import JobFacts, explain_job
from duly.domain.explanations.members import explain_unput
from duly.domain.explanations.schedules import ScheduleFacts, explain_schedule
from duly.domain.explanations.slots import RunFacts, SlotFacts, explain_run, explain_slot
from duly.domain.explanations.spending import Spending
from duly.domain.explanations.waiting import Holders, SeenSession, Wait, waiting_in_words
from duly.domain.explanations.workflows import WorkflowRunFacts, explain_execution, explain_workflow_run

__all__ = [
    "Explained",
    "Explanation",
    "Fact",
    "GroupFacts",
    "Holders",
    "JobFacts",
    "NothingKnown",
    "RunFacts",
    "ScheduleFacts",
    "SeenSession",
    "SlotFacts",
    "Spending",
    "Subject",
    "Wait",
    "WorkflowRunFacts",
    "explain_execution",
    "explain_group",
    "explain_job",
    "explain_run",
    "explain_schedule",
    "explain_slot",
    "explain_unput",
    "explain_workflow_run",
    "waiting_in_words",
]
