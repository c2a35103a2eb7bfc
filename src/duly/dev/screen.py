"""What `duly dev` prints: what is scheduled, then a line for each slot as it ends, and why if it does not run."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, tzinfo
from itertools import groupby
from typing import TextIO

from duly.application.telling import Nobody
from duly.domain.decisions import Decision, Fate
from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import SessionId
from duly.domain.instants import SECOND, Instant, Micros, instant_of, moment_of
from duly.domain.jobs import JobStatus
from duly.domain.payloads import value_of
from duly.domain.schedules import Schedule, ScheduleState, schedule_of_key, slot_of_key
from duly.domain.sessions import ClaimedJob, Report, Rescue

NEXT_FIRES = 5
_LONGEST_TEXT = 160
_NARROWEST = 12
_DIM, _GREEN, _YELLOW, _RED = "2", "32", "33", "31"
_FATES = {
    Fate.SKIPPED: ("skipped", _YELLOW),
    Fate.REPLACED: ("replaced", _YELLOW),
    Fate.STOPPED: ("stopped", _YELLOW),
    Fate.OWED: ("missed, will be caught up", _YELLOW),
    Fate.MISSED: ("missed", _RED),
    Fate.FAILED: ("failed to start", _RED),
    Fate.BROKEN: ("broken", _RED),
}


class Screen(Nobody):
    """Colour only on a terminal. A reader that went away is no reason to stop."""

    def __init__(self, now: Callable[[], datetime], file: TextIO | None = None, zone: tzinfo | None = None) -> None:
        self._now = now
        self._file = file or sys.stdout
        self._zone = zone
        self._has_colours = self._file.isatty()
        self._width = _NARROWEST

    def say(self, text: str = "", colour: str | None = None) -> None:
        with suppress(OSError, ValueError):
            self._file.write(f"{self._coloured(text, colour)}\n")
            self._file.flush()

    def note(self, text: str) -> None:
        """Something that is of no single schedule."""
        self.say(f"{self._clock(self._now())}  {text}", _DIM)

    def complain(self, text: str) -> None:
        self.say(f"{self._clock(self._now())}  {text}", _RED)

    def scheduled(self, schedules: Sequence[Schedule]) -> None:
        """Each in words, with its next fires."""
        self._width = max([_NARROWEST, *(len(schedule.id) for schedule in schedules)])
        for schedule in schedules:
            state = "" if schedule.state is ScheduleState.ACTIVE else f" ({schedule.state})"
            self.say(f"  {schedule.id:{self._width}}  {schedule.cadence.explain()}{state}")
            if told := self._fires(schedule):
                self.say(f"  {'':{self._width}}  {told}", _DIM)
        self.say()

    def _fires(self, schedule: Schedule) -> str:
        """From now on, with their day if they are not all today's; what is overdue is not to come."""
        now = instant_of(self._now(), field="now")
        is_overdue = schedule.fire_at is not None and schedule.fire_at < now
        ahead = replace(schedule, opened_through=max(schedule.opened_through, now // SECOND))
        fires = [self._local(moment_of(fire.fire_at)) for fire in ahead.upcoming(NEXT_FIRES)]
        since = [self._local(moment_of(schedule.fire_at))] if is_overdue and schedule.fire_at is not None else []
        today = self._local(self._now()).date()
        pattern = "%H:%M:%S" if all(fire.date() == today for fire in (*since, *fires)) else "%a %d %b %H:%M"
        told = [f"overdue since {at:{pattern}}" for at in since]
        told += [f"next {', '.join(f'{fire:{pattern}}' for fire in fires)}"] if fires else []
        return "; ".join(told)

    # As telemetry

    def decided(self, decisions: Sequence[Decision], *, due: int = 0) -> None:  # noqa: ARG002 - of no interest here
        """Slots in a row that met the same fate are one line: a night without `duly dev` has thousands of them."""
        for _, alike in groupby(decisions, key=_fate_of):
            first, *others = alike
            if first.fate in _FATES:
                said, colour = _FATES[first.fate]
                count = first.count + sum(other.count for other in others)
                self._line(first.schedule_id, first.slot, _with_reason(said, first, count), colour)

    def exchanged(self, started: Sequence[ClaimedJob], ended: Sequence[Report]) -> None:  # noqa: ARG002 - shown at their end
        for report in ended:
            schedule, slot = _origin(report.job)
            said, colour = _outcome(report)
            self._line(schedule, slot, said, colour)

    def asked(self, graph_id: str, question: str, command: str) -> None:
        self.say(f"{self._clock(self._now())}  {graph_id} asks {_one_line(question)}: {command}", _YELLOW)

    def failed(self, what: str, error: Exception) -> None:
        self.complain(f"could not {what}, tries again: {_one_line(str(error))}")

    def session_lost(self, session: SessionId, *, running: int) -> None:
        self.complain(f"this worker was silent for too long and lost {session}, with {running} running")

    def rescued(self, rescues: Sequence[Rescue]) -> None:
        returned, failed = sum(each.returned for each in rescues), sum(each.failed for each in rescues)
        if returned or failed:
            self.note(f"took over from a dead worker: {returned} had not begun, {failed} had and will be tried again")

    def _line(self, name: str, slot: Instant | None, said: str, colour: str) -> None:
        shown = " " * 8 if slot is None else self._clock(moment_of(slot))
        head = f"{self._clock(self._now())}  {name:{self._width}}  {shown}"
        self.say(f"{head}  {self._coloured(said, colour)}")

    def _clock(self, moment: datetime) -> str:
        return f"{self._local(moment):%H:%M:%S}"

    def _local(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone)

    @property
    def zone_name(self) -> str:
        return self._local(self._now()).tzname() or "local time"

    def _coloured(self, text: str, colour: str | None) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if colour and text and self._has_colours else text


def _origin(job: ClaimedJob) -> tuple[str, Instant | None]:
    """The schedule and slot that a run's key names; a job that somebody put has its kind for a name."""
    slot = slot_of_key(job.key) if job.ledger_run is not None and job.key is not None else None
    if slot is None or job.key is None:
        return job.kind, None
    return schedule_of_key(job.key, job.lane), instant_of(slot, field="slot")


def _outcome(report: Report) -> tuple[str, str]:
    job, ending = report.job, report.ending
    took = _took(report.ran_for)
    nth = f", attempt {job.attempt}" if job.attempt > 1 else ""
    if ending.status is JobStatus.COMPLETED:
        return f"ran in {took}{nth}{_cost(report)}", _GREEN
    where = f" ({_one_line(ending.place)})" if ending.place else ""
    why = f": {_one_line(ending.error)}{where}" if ending.error else ""
    if ending.status is not JobStatus.FAILED:
        return f"{ending.status.lower()} after {took}{nth}{why}", _YELLOW
    if ending.retryable and job.attempt < job.max_attempts:
        return f"attempt {job.attempt} of {job.max_attempts} failed after {took}{why}; will be tried again", _YELLOW
    return f"failed after {took}{nth}{why}", _RED


def _cost(report: Report) -> str:
    """Of a graph that cost something."""
    if report.job.kind != GRAPH_RUN or report.ending.result is None:
        return ""
    cost = value_of(report.ending.result).get("cost")
    return f", cost {cost}" if isinstance(cost, str) else ""


def _fate_of(decision: Decision) -> tuple[object, ...]:
    return (decision.schedule_id, decision.fate, decision.reason, decision.detail)


def _with_reason(said: str, decision: Decision, count: int) -> str:
    slots = f" ({count} slots)" if count > 1 else ""
    reasons = _texts(decision.reason, decision.detail)
    return f"{said}{slots}: {', '.join(reasons)}" if reasons else f"{said}{slots}"


def _texts(*texts: str | None) -> list[str]:
    return [_one_line(str(text)) for text in texts if text]


def _took(duration: Micros) -> str:
    return f"{duration // 1_000} ms" if duration < SECOND else f"{duration / SECOND:.1f} s"


def _one_line(text: str) -> str:
    """Without what would steer a terminal."""
    line = next(iter(text.splitlines()), "")[:_LONGEST_TEXT]
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
