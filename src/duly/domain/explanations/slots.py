"""Why a slot is as it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from duly.domain.audit import Term, Timekeeping, term_at, terms_of
from duly.domain.cadence import TZ_VERSION
from duly.domain.explanations.explanation import Explanation, lasting, shown, slots_in_words
from duly.domain.explanations.runs import ANSWERS, Jobs, run_in_words
from duly.domain.explanations.spending import Spending, spending_in_words
from duly.domain.ids import RunId
from duly.domain.instants import SECOND, Instant, written
from duly.domain.jitter import fire_at
from duly.domain.runs import Arrears, Gap, GapReason, Run
from duly.domain.schedules import Revision, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFacts:
    """All that is recorded of one slot. `by_hand` are manual and backfill runs of the same instant, and `reviews` what
    runs wait for people to decide, in words; `waits` is what its live job waits for."""

    schedule: Schedule
    revisions: Sequence[Revision]
    slot: int
    now: Instant
    timekeeping: Timekeeping
    run: Run | None = None
    jobs: Jobs = ()
    gap: Gap | None = None
    owed: Arrears | None = None
    by_hand: Sequence[Run] = ()
    reviews: Mapping[RunId, Sequence[str]] = field(default_factory=dict)
    spending: Spending | None = None
    waits: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """All that is recorded of a run that no slot stands for: by hand, or of a backfill."""

    run: Run
    now: Instant
    jobs: Jobs = ()
    reviews: Sequence[str] = ()
    spending: Spending | None = None
    waits: Sequence[str] = ()


def explain_run(facts: RunFacts) -> Explanation:
    run = facts.run
    what = f"{run.id} is a {run.kind} run of {run.schedule_id} for {written(run.scheduled_for)}"
    asked = f"{what}, asked for by {run.own_key!r} (revision {run.revision})."
    sentences = [asked, *run_in_words(run, facts.jobs, facts.reviews), *facts.waits]
    if facts.spending is not None:
        sentences += spending_in_words(facts.spending, now=facts.now)
    slot = run.scheduled_for // SECOND
    return Explanation(schedule_id=run.schedule_id, slot=slot, answer=ANSWERS[run.status], sentences=sentences)


def explain_slot(facts: SlotFacts, *, tz_version: str = TZ_VERSION) -> Explanation:
    term = term_at(terms_of(facts.revisions, tz_version=tz_version), facts.slot)
    if term is None:
        return _unplanned(facts, "the schedule did not exist yet")
    if not term.plans:
        until = "" if term.through is None else f" until {shown(term.through)}"
        state = f"the schedule was {term.revision.state} after {shown(term.after)}{until}"
        return _unplanned(facts, f"{state} (revision {term.revision.number})")
    if term.is_known and term.revision.cadence.next_second(facts.slot - 1) != facts.slot:
        return _unplanned(facts, _neighbours(facts.slot, term))
    answer, fate = _fate(facts, term)
    return _explained(facts, answer, [*_plan(facts, term), *fate])


def _unplanned(facts: SlotFacts, why: str) -> Explanation:
    answer = "not planned" if facts.run is None else ANSWERS[facts.run.status]
    return _explained(facts, answer, [f"{shown(facts.slot)} was not planned: {why}.", *_ledger(facts)])


def _explained(facts: SlotFacts, answer: str, sentences: Sequence[str]) -> Explanation:
    by_hand = [line for run in facts.by_hand for line in _by_hand(run, facts)]
    return Explanation(schedule_id=facts.schedule.id, slot=facts.slot, answer=answer, sentences=[*sentences, *by_hand])


def _by_hand(run: Run, facts: SlotFacts) -> list[str]:
    said = f"Besides, {run.id} ran for it ({run.kind}, {run.own_key!r}): {run.status}."
    return [said, *facts.reviews.get(run.id, ())]


# The plan


def _neighbours(slot: int, term: Term) -> str:
    cadence = term.revision.cadence
    before, after = cadence.last_second(slot), cadence.next_second(slot)
    around = [f"the one before is {shown(before)}"] if before is not None else []
    around += [f"the next is {shown(after)}"] if after is not None else []
    plan = f"it is no slot of revision {term.revision.number} ({cadence.explain()})"
    return f"{plan}; {' and '.join(around) or 'it has none'}"


def _plan(facts: SlotFacts, term: Term) -> Iterator[str]:
    revision = term.revision
    in_force = (
        f"revision {revision.number} ({revision.cadence.explain()}), in force for slots after {shown(term.after)}"
    )
    if not term.is_known:
        yield (
            f"{shown(facts.slot)} belongs to {in_force}; whether it was planned cannot be worked out here,"
            f" as it needs tz data {revision.tz_version}."
        )
        return
    yield f"{shown(facts.slot)} was planned by {in_force}."
    jitter = _fires_at(facts, term) - facts.slot * SECOND
    if jitter:
        sign = "after" if jitter > 0 else "before"
        yield f"It fires at {written(_fires_at(facts, term))}: {lasting(abs(jitter))} {sign} the slot, by jitter."


def _fires_at(facts: SlotFacts, term: Term) -> Instant:
    revision = term.revision
    if not term.is_known:
        return Instant(facts.slot * SECOND)
    return fire_at(
        facts.schedule.id,
        revision.cadence,
        facts.slot,
        jitter_ms=revision.policies.jitter_ms,
        not_before=revision.recorded_at,
    )


# What became of it


def _fate(facts: SlotFacts, term: Term) -> tuple[str, list[str]]:
    fires_at = _fires_at(facts, term)
    missed = _missed(facts, fires_at)
    if facts.run is not None:
        return ANSWERS[facts.run.status], [*missed, *_ledger(facts)]
    if facts.gap is not None:
        return "missed", [*missed, *_ledger(facts)]
    if facts.owed is not None:
        return "owed", [*missed, *_ledger(facts)]
    if facts.slot <= facts.schedule.opened_through:
        return "lost", ["Nothing accounts for it: it is lost, and `duly audit` says so."]
    if fires_at > facts.now:
        return "not due", [f"It is not due yet: it fires in {lasting(fires_at - facts.now)}."]
    return _unopened(facts, fires_at)


def _missed(facts: SlotFacts, fires_at: Instant) -> Iterator[str]:
    outage = facts.timekeeping.outage_at(fires_at)
    if outage is not None:
        silence = f"from {written(outage.start)} to {written(outage.end)}"
        yield f"Nobody kept time {silence} ({lasting(outage.end - outage.start)}), so it was missed."


def _ledger(facts: SlotFacts) -> Iterator[str]:
    if facts.run is not None:
        yield from run_in_words(facts.run, facts.jobs, facts.reviews.get(facts.run.id, ()))
        yield from facts.waits
        if facts.spending is not None:
            yield from spending_in_words(facts.spending, now=facts.now)
    if (gap := facts.gap) is not None:
        span = slots_in_words(gap.count, gap.first, gap.last)
        yield f"It lies in a gap of {span} ({gap.reason}): {_GAPS[gap.reason]}."
    if (owed := facts.owed) is not None:
        span = slots_in_words(owed.count, owed.next, owed.last)
        yield f"It is owed, in all {span}; the next is caught up at {written(owed.due_at)}."


_GAPS = {
    GapReason.OUTAGE: "missed slots that are not caught up",
    GapReason.CATCH_UP_CAP: "more were missed than may be caught up",
    GapReason.SUPERSEDED: "one run, for the newest missed slot, stands for them",
}


def _unopened(facts: SlotFacts, fires_at: Instant) -> tuple[str, list[str]]:
    late = f"It was due at {written(fires_at)}, {lasting(facts.now - fires_at)} ago, and is not opened yet"
    alive_at = facts.timekeeping.alive_at
    if facts.timekeeping.is_settled(fires_at):
        return "lost", [f"{late}, although a timekeeper is alive: it is lost, and `duly audit` says so."]
    if alive_at is None or alive_at < fires_at:
        since = "ever" if alive_at is None else f"since {written(alive_at)}"
        return "not opened", [f"{late}: nobody has kept time {since}. Start `duly` again."]
    return "not opened", [f"{late}."]
