"""`duly why`: sentences, one to a line."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from duly.cli.output import say
from duly.cli.parser import Options, Parser, add_json
from duly.cli.store import looking
from duly.cli.times import slot_from
from duly.domain.explanations import Explained, Explanation
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, written

if TYPE_CHECKING:
    from duly.bootstrap import Queue

Say = Callable[[str], None]


def define(parser: Parser) -> None:
    parser.add_argument(
        "id", metavar="ID", help="of a schedule, a run, a job, a group, a run of a workflow or a review"
    )
    parser.add_argument("slot", metavar="SLOT", nargs="?", help="an instant such as 2026-03-29T01:00:00Z")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        if options.slot is None:
            told(await queue.why.of(options.id), say, as_json=options.json)
        else:
            told(await queue.why.slot(ScheduleId(options.id), slot_from(options.slot)), say, as_json=options.json)

    looking(look)


def told(explanation: Explanation | Explained, tell: Say, *, as_json: bool) -> None:
    if not as_json:
        for sentence in explanation.sentences:
            tell(sentence)
    elif isinstance(explanation, Explained):
        # Shapes take a tenth of a second to load.
        from duly.wire.explanations import reasons_shape

        tell(reasons_shape(explanation).model_dump_json())
    else:
        at = None if explanation.slot is None else written(Instant(explanation.slot * SECOND))
        answer = {"schedule": explanation.schedule_id, "slot": at, "answer": explanation.answer}
        tell(json.dumps({**answer, "sentences": list(explanation.sentences)}))
