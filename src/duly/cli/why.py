"""`duly why`: sentences, one to a line."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from duly.application.why import Why
from duly.cli.output import say
from duly.cli.parser import Options, Parser, add_json
from duly.cli.store import looking
from duly.cli.times import slot_from
from duly.domain.explanations import Explanation
from duly.domain.ids import JobId, ScheduleId
from duly.domain.instants import SECOND, Instant, written
from duly.domain.jobs import UnknownJob
from duly.domain.runs import Run, UnknownRun

if TYPE_CHECKING:
    from duly.bootstrap import Queue

Say = Callable[[str], None]


def define(parser: Parser) -> None:
    parser.add_argument("schedule", metavar="SCHEDULE", help="its id, or that of a run, or of the job of one")
    parser.add_argument("slot", metavar="SLOT", nargs="?", help="an instant such as 2026-03-29T01:00:00Z")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        schedule, slot = options.schedule, options.slot
        if slot is None and (run := await _run_of(queue, schedule)) is not None:
            told(await queue.why.run(run.id), say, as_json=options.json)
            return
        await why(queue.why, say, schedule=schedule, slot=slot, as_json=options.json)

    looking(look)


async def _run_of(queue: "Queue", named: str) -> Run | None:
    """A run is as its slot is, and a job as its run; whatever else has such a name is a schedule."""
    try:
        if named.startswith("job_"):
            named = (await queue.jobs.find(JobId(named), owner=None)).ledger_run or named
        return await queue.runs.get(named, owner=None) if named.startswith("run_") else None
    except (UnknownJob, UnknownRun):
        return None


async def why(use_case: Why, tell: Say, *, schedule: str, slot: str | None, as_json: bool) -> None:
    schedule_id = ScheduleId(schedule)
    if slot is None:
        explanation = await use_case.schedule(schedule_id)
    else:
        explanation = await use_case.slot(schedule_id, slot_from(slot))
    told(explanation, tell, as_json=as_json)


def told(explanation: Explanation, tell: Say, *, as_json: bool) -> None:
    if not as_json:
        for sentence in explanation.sentences:
            tell(sentence)
        return
    at = None if explanation.slot is None else written(Instant(explanation.slot * SECOND))
    answer = {"schedule": explanation.schedule_id, "slot": at, "answer": explanation.answer}
    tell(json.dumps({**answer, "sentences": list(explanation.sentences)}))
