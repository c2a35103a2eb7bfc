"""`duly why`: sentences, one to a line."""

import json
from collections.abc import Callable

from duly.application.why import Why
from duly.cli.output import say
from duly.cli.parser import Options, Parser, add_json
from duly.cli.store import looking
from duly.cli.times import slot_from
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, written

Say = Callable[[str], None]


def define(parser: Parser) -> None:
    parser.add_argument("schedule", metavar="SCHEDULE")
    parser.add_argument("slot", metavar="SLOT", nargs="?", help="an instant such as 2026-03-29T01:00:00Z")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Options) -> None:
    looking(lambda queue: why(queue.why, say, schedule=options.schedule, slot=options.slot, as_json=options.json))


async def why(use_case: Why, tell: Say, *, schedule: str, slot: str | None, as_json: bool) -> None:
    schedule_id = ScheduleId(schedule)
    if slot is None:
        explanation = await use_case.schedule(schedule_id)
    else:
        explanation = await use_case.slot(schedule_id, slot_from(slot))
    if not as_json:
        for sentence in explanation.sentences:
            tell(sentence)
        return
    at = None if explanation.slot is None else written(Instant(explanation.slot * SECOND))
    answer = {"schedule": explanation.schedule_id, "slot": at, "answer": explanation.answer}
    tell(json.dumps({**answer, "sentences": list(explanation.sentences)}))
