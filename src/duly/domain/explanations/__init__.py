"""Why a slot, or a schedule, is as it is: plain sentences, made of recorded facts and of nothing else."""

from duly.domain.explanations.explanation import Explanation
from duly.domain.explanations.schedules import ScheduleFacts, explain_schedule
from duly.domain.explanations.slots import SlotFacts, explain_slot

__all__ = ["Explanation", "ScheduleFacts", "SlotFacts", "explain_schedule", "explain_slot"]
