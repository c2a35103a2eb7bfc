"""`duly why`: sentences, one to a line."""

import json
from collections.abc import Callable

from duly.application.why import Why
from duly.cli.times import slot_from
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, written

Say = Callable[[str], None]


async def why(use_case: Why, say: Say, *, schedule: str, slot: str | None, as_json: bool) -> None:
    schedule_id = ScheduleId(schedule)
    if slot is None:
        explanation = await use_case.schedule(schedule_id)
    else:
        explanation = await use_case.slot(schedule_id, slot_from(slot))
    if not as_json:
        for sentence in explanation.sentences:
            say(sentence)
        return
    at = None if explanation.slot is None else written(Instant(explanation.slot * SECOND))
    answer = {"schedule": explanation.schedule_id, "slot": at, "answer": explanation.answer}
    say(json.dumps({**answer, "sentences": list(explanation.sentences)}))
