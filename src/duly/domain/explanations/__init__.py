"""Why a slot, a schedule, a job is as it is: plain sentences, made of recorded facts and of nothing else."""

from duly.domain.explanations.explanation import Explanation
from duly.domain.explanations.facts import Explained, Fact, NothingKnown, Subject
from duly.domain.explanations.jobs import JobFacts, explain_job
from duly.domain.explanations.schedules import ScheduleFacts, explain_schedule
from duly.domain.explanations.slots import RunFacts, SlotFacts, explain_run, explain_slot
from duly.domain.explanations.spending import Spending
from duly.domain.explanations.waiting import Holders, SeenSession, Wait, waiting_in_words

__all__ = [
    "Explained",
    "Explanation",
    "Fact",
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
    "explain_job",
    "explain_run",
    "explain_schedule",
    "explain_slot",
    "waiting_in_words",
]
