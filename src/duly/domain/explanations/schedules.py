"""Why a schedule runs, or does not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from duly.domain.audit import Timekeeping
from duly.domain.explanations.explanation import Explanation, lasting, shown, slots_in_words, why
from duly.domain.explanations.runs import ANSWERS
from duly.domain.instants import Instant, written
from duly.domain.runs import Arrears, Gap, Run, RunKind
from duly.domain.schedules import Revision, Schedule, ScheduleState


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFacts:
    """A schedule, its revisions from the first, its newest runs, its last gap, and what it owes."""

    schedule: Schedule
    revisions: Sequence[Revision] = ()
    now: Instant
    timekeeping: Timekeeping
    runs: Sequence[Run] = ()
    gap: Gap | None = None
    owed: Sequence[Arrears] = ()


def explain_schedule(facts: ScheduleFacts) -> Explanation:
    schedule = facts.schedule
    answer, state = _state(facts)
    revision = f"revision {schedule.revision}, changed last at {written(schedule.updated_at)}"
    sentences = [
        f"{schedule.id}: {schedule.cadence.explain()} ({revision}).",
        state,
        *_missed(facts),
        *(_run(run) for run in facts.runs),
    ]
    if not facts.runs:
        sentences.append("It has not run yet.")
    return Explanation(schedule_id=schedule.id, answer=answer, sentences=sentences)


def _state(facts: ScheduleFacts) -> tuple[str, str]:
    schedule = facts.schedule
    changed, reason = written(_state_since(facts)), why(None, schedule.state_reason)
    match schedule.state:
        case ScheduleState.PAUSED:
            return "paused", f"It does not run: it was paused at {changed}{reason}. Resume it to go on."
        case ScheduleState.BROKEN:
            return "broken", f"It does not run: it broke at {changed}{reason}. Edit or resume it to go on."
        case ScheduleState.DELETED:
            return "deleted", f"It does not run: it was deleted at {changed}{reason}."
        case ScheduleState.ACTIVE:
            return _next(facts)


def _state_since(facts: ScheduleFacts) -> Instant:
    """Later revisions may have changed other things, and left the state as it was."""
    since = facts.schedule.updated_at
    for revision in reversed(facts.revisions):
        if revision.state is not facts.schedule.state:
            break
        since = revision.recorded_at
    return since


def _next(facts: ScheduleFacts) -> tuple[str, str]:
    slot, fires_at = facts.schedule.next_slot, facts.schedule.fire_at
    if slot is None or fires_at is None:
        return "finished", "It does not run any more: its cadence has no slot left."
    if fires_at > facts.now:
        return "active", f"Its next slot is {shown(slot)}, in {lasting(fires_at - facts.now)}."
    late = f"Its next slot, {shown(slot)}, was due at {written(fires_at)}, {lasting(facts.now - fires_at)} ago"
    alive_at = _alive_at(facts)
    if alive_at is None or alive_at < fires_at:
        since = "ever" if alive_at is None else f"since {written(alive_at)}"
        return "waiting", f"{late}, and is not opened, because nobody has kept time {since}."
    return "waiting", f"{late}, and is about to be opened."


def _alive_at(facts: ScheduleFacts) -> Instant | None:
    """A timekeeper that was killed opened slots after its heart beat last."""
    opened = [run.opened_at for run in facts.runs if run.kind is RunKind.SLOT]
    beaten = facts.timekeeping.alive_at
    return max([*opened, *([] if beaten is None else [beaten])], default=None)


def _missed(facts: ScheduleFacts) -> Iterator[str]:
    for owed in facts.owed:
        span = slots_in_words(owed.count, owed.next, owed.last)
        yield f"It owes {span}; the next is caught up at {written(owed.due_at)}."
    if (gap := facts.gap) is not None:
        yield f"Its last gap is of {slots_in_words(gap.count, gap.first, gap.last)} ({gap.reason})."


def _run(run: Run) -> str:
    kind = "" if run.kind is RunKind.SLOT else f", {run.kind}"
    text = run.error_message or run.detail
    return f"{written(run.scheduled_for)} {ANSWERS[run.status]}{why(run.reason, text)} ({run.id}{kind})."
