"""`duly audit`: a line for each schedule, what was found, and the sum."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from duly.application.audit import EVER, Audit
from duly.cli import exits
from duly.cli.output import say
from duly.cli.parser import Options, Parser, add_json
from duly.cli.store import looking
from duly.cli.times import since_from
from duly.domain.audit import Equation, Finding, Law, Verdict
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, written

Say = Callable[[str], None]


def define(parser: Parser) -> None:
    parser.add_argument("--schedule", metavar="ID", help="one schedule (default: all that ever were)")
    parser.add_argument("--since", metavar="WHEN", help="later slots only: an instant, or how long ago (7d, 12h)")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Options) -> int:
    laws_hold = looking(
        lambda queue: audit(queue.audit, say, schedule=options.schedule, since=options.since, as_json=options.json)
    )
    return exits.OK if laws_hold else exits.FAILED


async def audit(use_case: Audit, tell: Say, *, schedule: str | None, since: str | None, as_json: bool) -> bool:
    """Says each verdict as it comes, and keeps none; answers whether the laws hold."""
    beginning = EVER if since is None else since_from(since, now=use_case.storage.clock.now())
    only = None if schedule is None else ScheduleId(schedule)
    totals, found, count = Equation(), Counter[Law](), 0
    async for verdict in use_case.verdicts(only, since=beginning):
        if as_json:
            tell((", " if count else '{"schedules": [') + json.dumps(_object(verdict)))
        else:
            for line in _lines(verdict):
                tell(line)
        totals.add(verdict.equation)
        found += verdict.findings.counts
        count += 1
    if as_json:
        rest = {"count": count, **_counts(totals), "found": dict(found), "laws_hold": not found}
        tell(("" if count else '{"schedules": [') + f'], "totals": {json.dumps(rest)}}}')
    else:
        tell(_line("1 schedule" if count == 1 else f"{count} schedules", totals))
        tell("the laws hold" if not found else "the laws are broken: " + _listed(found))
    return not found


def _lines(verdict: Verdict) -> Iterator[str]:
    yield _line(verdict.schedule.id, verdict.equation)
    for note in verdict.notes:
        yield f"  note: {note}"
    for finding in verdict.findings.kept:
        yield f"  {finding}"
    if unsaid := _listed(verdict.findings.unkept):
        yield f"  and more: {unsaid}"


def _line(name: str, equation: Equation) -> str:
    extra = [f"{equation.paused} not planned (paused)"] if equation.paused else []
    extra += [f"{count} {kind}" for kind, count in sorted(equation.extra.items())]
    return "; ".join([f"{name:<24} {equation}", *extra])


def _listed(counts: Counter[Law]) -> str:
    return ", ".join(f"{counts[law]} {law}" for law in Law if counts[law])


def _object(verdict: Verdict) -> dict[str, Any]:
    return {
        "schedule": verdict.schedule.id,
        **_counts(verdict.equation),
        "found": dict(verdict.findings.counts),
        "findings": [_finding(finding) for finding in verdict.findings.kept],
        "notes": list(verdict.notes),
    }


def _counts(equation: Equation) -> dict[str, Any]:
    return {
        "due": equation.due,
        "became": [part._asdict() for part in equation.parts()],
        "paused": equation.paused,
        "extra": dict(equation.extra),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    first, last = (
        None if second is None else written(Instant(second * SECOND)) for second in (finding.first, finding.last)
    )
    return {"law": finding.law, "first": first, "last": last, "slots": finding.slots, "text": finding.text}
