"""`duly audit`: a line for each schedule and account, what was found, and the sums."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from duly.application.audit import EVER, Audit
from duly.application.money_audit import MoneyAudit
from duly.cli import exits
from duly.cli.money_audit import money_lines
from duly.cli.output import say
from duly.cli.parser import Options, Parser, add_json
from duly.cli.store import looking
from duly.cli.times import since_from
from duly.domain.audit import Equation, Finding, Law, Verdict
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, written

if TYPE_CHECKING:
    from duly.bootstrap import Queue

Say = Callable[[str], None]


def define(parser: Parser) -> None:
    parser.add_argument("--schedule", metavar="ID", help="one schedule (default: all that ever were)")
    parser.add_argument("--since", metavar="WHEN", help="later slots only: an instant, or how long ago (7d, 12h)")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Options) -> int:
    async def look(queue: "Queue") -> bool:
        money = queue.money_audit if options.schedule is None else None
        given = {"schedule": options.schedule, "since": options.since, "as_json": options.json}
        return await audit(queue.audit, say, money=money, **given)

    return exits.OK if looking(look) else exits.FAILED


async def audit(
    use_case: Audit,
    tell: Say,
    *,
    schedule: str | None,
    since: str | None,
    as_json: bool,
    money: MoneyAudit | None = None,
) -> bool:
    """Says each verdict as it comes, and keeps none; answers whether the laws hold, of money too if asked."""
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
        opened = "" if count else '{"schedules": ['
        rest = {"count": count, **_counts(totals), "found": dict(found), "laws_hold": not found}
        return await _closed(tell, f'{opened}], "totals": {json.dumps(rest)}', money, holds=not found)
    tell(_line("1 schedule" if count == 1 else f"{count} schedules", totals))
    misspent = "" if money is None else await money_lines(money, tell)
    broken = ", ".join(filter(None, (_listed(found), misspent)))
    tell("the laws hold" if not broken else "the laws are broken: " + broken)
    return not broken


async def _closed(tell: Say, begun: str, money: MoneyAudit | None, *, holds: bool) -> bool:
    if money is None:
        tell(f"{begun}}}")
        return holds
    report = await money.report()
    tell(f'{begun}, "money": {json.dumps(report)}}}')
    return holds and bool(report["totals"]["laws_hold"])


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
