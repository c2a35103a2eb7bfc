"""Why a slot, or a schedule, is as it is: plain sentences, made of recorded facts and of nothing else."""

from duly.domain.explanations.explanation import Explanation
from duly.domain.explanations.schedules import ScheduleFacts, explain_schedule
from duly.domain.explanations.slots import RunFacts, SlotFacts, explain_run, explain_slot
from duly.domain.explanations.spending import Spending

__all__ = [
    "Explanation",
    "RunFacts",
    "ScheduleFacts",
    "SlotFacts",
    "Spending",
    "explain_run",
    "explain_schedule",
    "explain_slot",
]
