"""Options of a schedule into its cadence, target and policies; what is not given stays as it was."""

from dataclasses import replace
from datetime import datetime, timedelta

from duly.cli.given import milliseconds_from, object_from
from duly.cli.parser import Options
from duly.cli.times import moment_from
from duly.domain.cadence import Bounded, Cadence, Cron, Interval, cron, every, once
from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName
from duly.domain.payloads import EMPTY
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.pools import DEFAULT_POOL
from duly.domain.retries import DEFAULT_RETRY, NO_RETRY, RetryPolicy
from duly.domain.schedules import Target, template_in


def cadence_from(options: Options, old: Cadence | None = None) -> Cadence | None:
    """None if nothing about it was given."""
    inner, first, last = _unbound(old)
    plain = _plain(options, inner)
    start, end = _bound(options.start_at, "--start-at"), _bound(options.end_at, "--end-at")
    if plain is None and start is None and end is None:
        return None
    cadence = inner if plain is None else plain
    if cadence is None:
        raise InvalidInput("cadence", "is missing", fix="give one of --cron, --every and --at")
    if start or end:
        cadence = cadence.within(start_at=start, end_at=end)
        first, last = (None if start else first), (None if end else last)
    return cadence if first is None and last is None else Bounded(cadence=cadence, first=first, last=last)


def _plain(options: Options, old: Cadence | None) -> Cadence | None:
    if options.cron is None and options.tz is not None and not isinstance(old, Cron):
        raise InvalidInput("--tz", "is the zone of a cron expression", fix="give --cron, too")
    if options.every is None and options.anchor is not None and not isinstance(old, Interval):
        raise InvalidInput("--anchor", "is what an interval counts from", fix="give --every, too")
    if options.cron is not None:
        return cron(options.cron, options.tz or (old.tz if isinstance(old, Cron) else "UTC"))
    if options.every is not None:
        return every(options.every, anchor=_bound(options.anchor, "--anchor"))
    if options.at is not None:
        return once(moment_from(options.at, field="--at"))
    if options.tz is not None and isinstance(old, Cron):
        return cron(old.expr, options.tz)
    if options.anchor is not None and isinstance(old, Interval):
        return every(timedelta(seconds=old.seconds), anchor=_bound(options.anchor, "--anchor"))
    return None


def _unbound(cadence: Cadence | None) -> tuple[Cadence | None, int | None, int | None]:
    if isinstance(cadence, Bounded):
        return cadence.cadence, cadence.first, cadence.last
    return cadence, None, None


def _bound(text: str | None, field: str) -> datetime | None:
    return None if text is None else moment_from(text, field=field)


def target_from(options: Options, old: Target | None = None) -> Target:
    params = object_from(options.input, field="--input")
    limit = milliseconds_from(options.time_limit, field="--time-limit")
    kind = options.target or (None if old is None else old.kind)
    if options.retries is not None and template_in(str(kind)) is not None:
        raise InvalidInput("--retries", "is for the template to say", fix="leave it out, or change the template")
    if old is None or (template_in(str(kind)) is None) != (old.template is None):
        payload = EMPTY if old is None else old.payload
        old = Target(kind=str(kind), payload=payload, retry=DEFAULT_RETRY)
    target = Target(
        kind=options.target or old.kind,
        params=params,
        pool=PoolName(options.pool or old.pool or DEFAULT_POOL),
        priority=old.priority if options.priority is None else options.priority,
        retry=_retry(options.retries, old.retry),
        timeout_ms=old.timeout_ms if limit is None else limit,
    )
    return target if params is not None else _with_input_of(old, target)


def _with_input_of(old: Target, new: Target) -> Target:
    return Target(
        kind=new.kind,
        payload=old.payload,
        pool=new.pool,
        priority=new.priority,
        retry=new.retry,
        timeout_ms=new.timeout_ms,
    )


def _retry(retries: int | None, old: RetryPolicy) -> RetryPolicy:
    if retries is None:
        return old
    base = RetryPolicy() if old == NO_RETRY else old
    return replace(base, max_attempts=retries + 1) if retries else NO_RETRY


def policies_from(options: Options, old: Policies) -> Policies:
    given = {
        "overlap": None if options.overlap is None else Overlap(options.overlap),
        "catch_up": None if options.catch_up is None else CatchUp(options.catch_up),
        "catch_up_cap": options.catch_up_cap,
        "jitter_ms": milliseconds_from(options.jitter, field="--jitter"),
    }
    return replace(old, **{name: value for name, value in given.items() if value is not None})
