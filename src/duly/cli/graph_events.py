"""`duly run events` and `duly run watch`: what the graph of a run told, and goes on to tell."""

import json
import sys
from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.logs import tell_lines
from duly.cli.output import note, say, say_json, shortened
from duly.cli.parser import Options, Parser, whole
from duly.cli.shapes import at, graph_event_shape, run_shape
from duly.cli.store import looking
from duly.cli.waiting import LOOK_EVERY
from duly.domain.executions import EventKind, ExecutionEvent
from duly.domain.ids import JobId
from duly.domain.payloads import value_of
from duly.domain.runs import RunStatus

if TYPE_CHECKING:
    from duly.bootstrap import Queue

# Each may be large: no more are held than this.
_PAGE = 50
_LONGEST = 400


def add_after(parser: Parser) -> None:
    parser.add_argument(
        "--after", type=whole(0, 999_999_999), default=0, metavar="N", help="only events numbered higher than this"
    )


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        seen, left = options.after, options.most
        while left and (
            events := await queue.execution_events.of_run(options.id, owner=None, after=seen, most=min(left, _PAGE))
        ):
            for event in events:
                _say(event, as_json=options.json)
            seen, left = events[-1].seq, left - len(events)
        if seen == options.after:
            note("no events")
        elif not left:
            note(f"there may be more: --after {seen}")

    looking(look)


def watch(options: Options) -> int:
    async def look(queue: "Queue") -> int:
        seen, lines = options.after, dict[JobId, int]()
        while True:
            # Looked at before its events: whatever a run told is kept before it ends.
            run = await queue.runs.get(options.id, owner=None)
            for job in await queue.runs.attempts(options.id, owner=None):
                lines[job.id] = await tell_lines(
                    queue, job.id, after=lines.get(job.id, 0), as_json=options.json, attempt=job.attempt
                )
            seen = await _tell(queue, options, seen)
            if run.status.is_terminal:
                say_json(run_shape(run)) if options.json else say(f"{run.id} ended: {run.status.value}")
                return exits.OK if run.status is RunStatus.SUCCESS else exits.FAILED
            await queue.storage.clock.sleep(LOOK_EVERY)

    return looking(look)


async def _tell(queue: "Queue", options: Options, seen: int) -> int:
    while events := await queue.execution_events.of_run(options.id, owner=None, after=seen, most=_PAGE):
        for event in events:
            _say(event, as_json=options.json)
        seen = events[-1].seq
        sys.stdout.flush()  # whoever follows through a pipe sees each event when it comes
    return seen


def _say(event: ExecutionEvent, *, as_json: bool) -> None:
    if as_json:
        say_json(graph_event_shape(event))
        return
    data = value_of(event.data)
    is_text = event.kind is EventKind.TOKEN and isinstance(data.get("text"), str)
    told = data["text"] if is_text else json.dumps(data, ensure_ascii=False)
    say(f"{at(event.at)} {event.seq:>5} {event.kind.value:<9} {shortened(told, longest=_LONGEST)}")
