"""Schedules as plain dicts: what a reader of the docs would expect, with slots found by brute force, and no SQL.

Instants are microseconds, slots are seconds, nothing is jittered, and a handler is entered once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from tests.contracts.model import Refusal
from tests.seasons import Timetable

SECOND = 1_000_000
OUTAGE_AFTER = 3_600 * SECOND
LOOKAHEAD = 60 * SECOND
STOP_WITHIN = 30 * SECOND
MOST_BACKFILLED = 20
ONE_FOR_ALL = ("skip", "queue_one", "replace")


@dataclass(frozen=True, slots=True)
class Plan:
    timetable: Timetable
    overlap: str
    catch_up: str
    cap: int


@dataclass(slots=True, kw_only=True)
class Run:
    schedule: str
    slot: int
    own_key: str
    revision: int
    in_lane: bool
    put: int
    status: str = "pending"
    reason: str | None = None
    revoke_at: int | None = None

    @property
    def is_in_flight(self) -> bool:
        return self.status in ("pending", "running")


@dataclass(slots=True)
class Debt:
    """Missed slots that are owed, oldest first; `every` is the pause between them."""

    plan: Plan
    revision: int
    slots: list[int]
    due_at: int
    every: int


@dataclass(slots=True)
class Schedule:
    name: str
    plan: Plan
    through: int
    state: str = "active"
    revision: int = 1
    gaps: dict[int, str] = field(default_factory=dict)
    debts: list[Debt] = field(default_factory=list)
    revisions: list[tuple[int, str]] = field(default_factory=list)


class Model:
    def __init__(self, now: int) -> None:
        self.now = now
        self.spans: list[tuple[int, int]] = []
        self.schedules: dict[str, Schedule] = {}
        self.runs: list[Run] = []
        self._puts = count()

    # What a caller sees

    def rows(self) -> dict[tuple[str, int, str], tuple[str, str | None, int]]:
        return {(run.schedule, run.slot, run.own_key): (run.status, run.reason, run.revision) for run in self.runs}

    def states(self) -> dict[str, tuple[str, int, int]]:
        return {name: (one.state, one.revision, one.through) for name, one in self.schedules.items()}

    def revisions(self) -> dict[str, list[tuple[int, str]]]:
        return {name: one.revisions for name, one in self.schedules.items()}

    def owed(self, name: str) -> list[int]:
        return [slot for debt in self.schedules[name].debts for slot in debt.slots]

    def next_slot(self, name: str) -> int | None:
        schedule = self.schedules[name]
        if schedule.state != "active":
            return None
        return next(iter(schedule.plan.timetable.slots(schedule.through, schedule.plan.timetable.season.end)), None)

    def running(self) -> list[Run]:
        return [run for run in self.runs if run.status == "running"]

    # Time

    def advance(self, micros: int) -> None:
        """Time passes, or somebody sets the clock: nothing here knows the difference."""
        self.now += micros

    def beat(self) -> None:
        """Somebody keeps time now. Where nobody had been before, the rest of that silence is not one any more."""
        now = self.now
        if not self.spans or now - self.spans[-1][1] > OUTAGE_AFTER:
            self.spans.append((now, now))
        elif now >= self.spans[-1][0]:
            self.spans[-1] = (self.spans[-1][0], max(self.spans[-1][1], now))
        elif not any(start <= now <= end for start, end in self.spans):
            self.spans.append((now, min(start for start, _ in self.spans if start > now)))
            self.spans.sort()

    def tick(self) -> None:
        due = [one for one in self.schedules.values() if one.state == "active" and self._due(one)]
        if due:
            self._note_silence(OUTAGE_AFTER // 2)
        for schedule in due:
            self._open(schedule)
        self._catch_up()
        for run in self.runs:
            if run.revoke_at is not None and run.revoke_at <= self.now:
                run.revoke_at = None
                if run.status == "running":
                    run.status = "cancelled"

    # What owners do

    def create(self, name: str, plan: Plan) -> None:
        self._require_fires(plan)
        schedule = self.schedules.get(name)
        if schedule is None:
            began = self.now // SECOND
            self.schedules[name] = Schedule(name, plan, began, revisions=[(began, "active")])
            self._note_silence()
            return
        if schedule.state != "deleted":
            raise Refusal("schedule_exists")
        self._change(schedule, plan=plan, state="active")

    def edit(self, name: str, plan: Plan, *, withdraw: bool) -> None:
        self._require_fires(plan)
        schedule = self._living(name)
        self._change(schedule, plan=plan, state=schedule.state, withdraw=withdraw)

    def set_state(self, name: str, state: str, *, withdraw: bool) -> None:
        schedule = self._living(name)
        self._change(schedule, plan=schedule.plan, state=state, withdraw=withdraw)

    def _change(self, schedule: Schedule, *, plan: Plan, state: str, withdraw: bool = False) -> None:
        if (schedule.plan, schedule.state) != (plan, state):
            self._note_silence()
            if schedule.state == "active":
                self._open(schedule)
            schedule.through = max(schedule.through, self.now // SECOND)
            schedule.revision += 1
            schedule.plan, schedule.state = plan, state
            schedule.revisions.append((schedule.through, state))
            if state == "deleted":
                schedule.gaps |= dict.fromkeys(self.owed(schedule.name), "outage")
                schedule.debts.clear()
        if withdraw:
            for run in self._in_flight(schedule):
                if run.status == "pending":
                    run.status = "cancelled"

    def run_now(self, name: str, key: str) -> int:
        schedule = self._living(name)
        own_key = f"manual:{key}"
        for run in self.runs:
            if (run.schedule, run.own_key) == (name, own_key):
                return run.slot
        return self._put(schedule, self.now // SECOND, own_key=own_key).slot

    def backfill(self, name: str, seconds: int, key: str) -> list[int]:
        """Of so many seconds up to now."""
        schedule = self._living(name)
        now, own_key = self.now // SECOND, f"backfill:{key}"
        slots = schedule.plan.timetable.slots(now - seconds - 1, now)
        if not 1 <= len(slots) <= MOST_BACKFILLED:
            raise Refusal("invalid_input")
        known = {run.slot for run in self.runs if (run.schedule, run.own_key) == (name, own_key)}
        for slot in slots:
            if slot not in known:
                self._put(schedule, slot, own_key=own_key)
        return sorted(known | set(slots))

    # What workers do

    def claim(self) -> list[tuple[str, int, str]]:
        """All that is ready: one of each lane that nobody runs in, and whatever has no lane."""
        busy = {run.schedule for run in self.running() if run.in_lane}
        claimed = []
        for run in sorted(self.runs, key=lambda run: run.put):
            if run.status == "pending" and not (run.in_lane and run.schedule in busy):
                busy |= {run.schedule} if run.in_lane else set()
                run.status = "running"
                claimed.append((run.schedule, run.slot, run.own_key))
        return sorted(claimed)

    def finish(self, run: Run, *, succeeds: bool) -> None:
        was_asked = run.revoke_at is not None
        run.status = "success" if succeeds else "cancelled" if was_asked else "error"

    def lose_worker(self) -> None:
        """What it was running has failed."""
        for run in self.running():
            self.finish(run, succeeds=False)

    # The decision table

    def _due(self, schedule: Schedule) -> list[int]:
        return schedule.plan.timetable.slots(schedule.through, self.now // SECOND)

    def _open(self, schedule: Schedule) -> None:
        for missed, slots in self._in_rows(self._due(schedule)):
            if not missed:
                for slot in slots:
                    self._open_late(schedule, slot)
            elif schedule.plan.catch_up == "none":
                schedule.gaps |= dict.fromkeys(slots, "outage")
            elif schedule.plan.overlap in ONE_FOR_ALL:
                schedule.gaps |= dict.fromkeys(slots[:-1], "superseded")
                self._open_late(schedule, slots[-1])
            else:
                self._owe(schedule, slots)
            schedule.through = slots[-1]

    def _in_rows(self, slots: list[int]) -> Iterator[tuple[bool, list[int]]]:
        """Missed slots in a row, then others in a row, and so on."""
        row: list[int] = []
        for slot in slots:
            if row and self._is_missed(slot) != self._is_missed(row[-1]):
                yield self._is_missed(row[-1]), row
                row = []
            row.append(slot)
        if row:
            yield self._is_missed(row[-1]), row

    def _is_missed(self, slot: int) -> bool:
        """Nobody was there for long around it."""
        instant = slot * SECOND
        if any(start <= instant <= end for start, end in self.spans):
            return False
        before = [end for _, end in self.spans if end < instant]
        after = [start for start, _ in self.spans if start > instant]
        return bool(before) and bool(after) and min(after) - max(before) > OUTAGE_AFTER

    def _open_late(self, schedule: Schedule, slot: int) -> None:
        in_flight = self._in_flight(schedule)
        waiting = [run for run in in_flight if run.status == "pending"]
        if schedule.plan.overlap == "skip" and in_flight:
            self._close(schedule, slot, "overlap")
        elif schedule.plan.overlap == "queue_one" and waiting:
            self._close(schedule, slot, "coalesced")
        else:
            if schedule.plan.overlap == "replace":
                self._make_way(in_flight)
            self._put(schedule, slot)

    def _make_way(self, in_flight: list[Run]) -> None:
        for run in in_flight:
            if run.status == "pending":
                run.status, run.reason = "cancelled", "replaced"
            elif run.revoke_at is None:
                run.revoke_at = self.now + STOP_WITHIN

    def _owe(self, schedule: Schedule, slots: list[int]) -> None:
        plan = schedule.plan
        kept, rest = slots[: plan.cap], slots[plan.cap :]
        schedule.gaps |= dict.fromkeys(rest, "catch_up_cap")
        every = LOOKAHEAD // len(kept) if plan.catch_up == "spread" else 0
        schedule.debts.append(Debt(plan, schedule.revision, kept, self.now, every))

    def _catch_up(self) -> None:
        """Of each schedule what it missed first; the next outage's slots wait for the next tick."""
        for schedule in self.schedules.values():
            debt = schedule.debts[0] if schedule.debts else None
            if debt is None or debt.due_at > self.now:
                continue
            taken = len(debt.slots) if not debt.every else 1 + (self.now - debt.due_at) // debt.every
            for slot in debt.slots[:taken]:
                as_planned = replace(schedule, plan=debt.plan, revision=debt.revision)
                self._put(as_planned, slot)
            debt.slots, debt.due_at = debt.slots[taken:], debt.due_at + debt.every * taken
            if not debt.slots:
                schedule.debts.remove(debt)

    def _put(self, schedule: Schedule, slot: int, *, own_key: str = "") -> Run:
        run = Run(
            schedule=schedule.name,
            slot=slot,
            own_key=own_key,
            revision=schedule.revision,
            in_lane=schedule.plan.overlap != "allow",
            put=next(self._puts),
        )
        self.runs.append(run)
        return run

    def _close(self, schedule: Schedule, slot: int, reason: str) -> None:
        run = self._put(schedule, slot)
        run.status, run.reason = "skipped", reason

    def _in_flight(self, schedule: Schedule) -> list[Run]:
        return [run for run in self.runs if run.schedule == schedule.name and run.is_in_flight]

    def _note_silence(self, longer_than: int = OUTAGE_AFTER) -> None:
        """Whoever judges slots, or counts on being in time, is there."""
        if not self.spans or self.now - self.spans[-1][1] > longer_than:
            self.beat()

    def _living(self, name: str) -> Schedule:
        schedule = self.schedules.get(name)
        if schedule is None or schedule.state == "deleted":
            raise Refusal("unknown_schedule")
        return schedule

    def _require_fires(self, plan: Plan) -> None:
        if not plan.timetable.slots(self.now // SECOND, plan.timetable.season.end):
            raise Refusal("invalid_input")
