"""A schedule: what should run, when, under which policies. Every change is a revision; none is ever rewritten."""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from duly.domain.cadence import TZ_VERSION, Cadence
from duly.domain.errors import Conflict, InvalidInput, NotFound
from duly.domain.ids import Owner, PoolName, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.jitter import fire_at
from duly.domain.keys import require_no_own_key, schedule_before_slot
from duly.domain.payloads import EMPTY, Payload, payload_of
from duly.domain.policies import Policies
from duly.domain.pools import DEFAULT_POOL
from duly.domain.retries import DAY_MS, NO_RETRY, RetryPolicy
from duly.domain.texts import name_of, text_of, whole_number_of

# So that an id leaves room for what keys and lanes put before and behind it.
LONGEST_ID = 160
LANE_PREFIX = "schedule:"
# Whose schedules a file names, and what their ids begin with: nobody else may take those.
SYSTEM = Owner("system")
SYSTEM_PREFIX = "governance:"
TEMPLATE_PREFIX = "template:"


class ScheduleState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    BROKEN = "broken"  # its evaluation failed; it opens nothing until it is edited or resumed
    DELETED = "deleted"  # a tombstone: its ledger stays, and creating its id again continues it


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The job that each run of a schedule puts, with `params` as its payload.

    The kind `template:NAME` stands for what that template says when a slot fires; all but the params is the template's.
    """

    kind: str
    params: InitVar[Mapping[str, Any] | None] = None
    pool: PoolName = DEFAULT_POOL
    priority: int = 0
    retry: RetryPolicy = NO_RETRY
    timeout_ms: int | None = None
    payload: Payload = EMPTY

    def __post_init__(self, params: Mapping[str, Any] | None) -> None:
        name_of(self.kind, field="kind")
        name_of(self.pool, field="pool")
        whole_number_of(self.priority, field="priority", least=-32_767, most=32_767)
        if self.timeout_ms is not None:
            whole_number_of(self.timeout_ms, field="timeout_ms", least=1, most=30 * DAY_MS)
        if not isinstance(self.retry, RetryPolicy):
            raise InvalidInput("retry", f"is a {type(self.retry).__name__}", fix="use a RetryPolicy")
        if params is not None:
            object.__setattr__(self, "payload", payload_of(params, field="params"))
        if self.template is not None:
            self._leave_to_the_template()

    @property
    def template(self) -> str | None:
        return template_in(self.kind)

    def _leave_to_the_template(self) -> None:
        name_of(self.template, field="kind")
        said = {"pool": self.pool != DEFAULT_POOL, "priority": self.priority != 0, "timeout_ms": self.timeout_ms}
        for field_, is_said in said.items():
            if is_said:
                raise InvalidInput(field_, "is for the template to say", fix="leave it out, or change the template")
        object.__setattr__(self, "retry", NO_RETRY)


def template_in(kind: str) -> str | None:
    """The name of the template that a target's kind stands for."""
    return kind.removeprefix(TEMPLATE_PREFIX) if kind.startswith(TEMPLATE_PREFIX) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The plan in force for slots later than `effective_from`, until a later revision is in force."""

    schedule_id: ScheduleId
    number: int
    effective_from: int
    state: ScheduleState
    cadence: Cadence
    policies: Policies
    target: Target
    tz_version: str
    recorded_at: Instant


@dataclass(frozen=True, slots=True)
class Fire:
    """A slot to come, and when it fires."""

    slot: Instant
    fire_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """`opened_through` is a UTC second: every slot up to it has its row or its gap, and is never opened again."""

    id: ScheduleId
    owner: Owner
    cadence: Cadence
    target: Target
    policies: Policies = field(default_factory=Policies)
    state: ScheduleState = ScheduleState.ACTIVE
    state_reason: str | None = None
    revision: int = 1
    opened_through: int
    next_slot: int | None = None
    fire_at: Instant | None = None
    last_run_at: Instant | None = None
    created_at: Instant
    updated_at: Instant

    def planned(self) -> "Schedule":
        """With its next slot and when that fires; a schedule that is not active has none."""
        is_active = self.state is ScheduleState.ACTIVE
        slot, fires_at = self.next_after(self.opened_through) if is_active else (None, None)
        return replace(self, next_slot=slot, fire_at=fires_at)

    def next_after(self, second: int) -> tuple[int | None, Instant | None]:
        """The first slot later than that, and when it fires."""
        slot = self.cadence.next_second(second)
        return slot, None if slot is None else self.fires_at(slot)

    @property
    def standing(self) -> "Standing":
        return Standing(self.id, self.opened_through, self.next_slot, self.fire_at, self.last_run_at)

    def fires_at(self, slot: int) -> Instant:
        """Not before its revision was made: what was not planned yet cannot have fired."""
        if self.policies.jitter_ms == 0:
            return Instant(slot * SECOND)
        return fire_at(self.id, self.cadence, slot, jitter_ms=self.policies.jitter_ms, not_before=self.updated_at)

    def upcoming(self, most: int) -> list["Fire"]:
        """The next slots, those that are due among them, and when each fires."""
        if self.state is not ScheduleState.ACTIVE:
            return []
        slots = islice(self.cadence.seconds_after(self.opened_through), most)
        return [Fire(Instant(slot * SECOND), self.fires_at(slot)) for slot in slots]

    def changed(self, *, at: Instant, **changes: Any) -> "Schedule":
        """The next revision, in force for slots after both `at` and whatever was opened."""
        through = max(self.opened_through, at // SECOND)
        revised = replace(self, revision=self.revision + 1, opened_through=through, updated_at=at, **changes)
        return revised.planned()

    def broken(self, *, at: Instant, reason: str) -> "Schedule":
        """The revision after its evaluation failed, in force at once: what could not be computed was not planned."""
        revised = replace(self, revision=self.revision + 1, updated_at=at)
        return replace(revised, state=ScheduleState.BROKEN, state_reason=reason).planned()

    def recorded(self) -> Revision:
        return Revision(
            schedule_id=self.id,
            number=self.revision,
            effective_from=self.opened_through,
            state=self.state,
            cadence=self.cadence,
            policies=self.policies,
            target=self.target,
            tz_version=TZ_VERSION,
            recorded_at=self.updated_at,
        )

    def require_revision(self, expected: int | None) -> None:
        if expected is not None and expected != self.revision:
            raise ScheduleChanged(self.id, expected=expected, found=self.revision)


class Standing(NamedTuple):
    """What opening slots moves of a schedule: made for every slot, so it is light."""

    id: ScheduleId
    opened_through: int
    next_slot: int | None
    fire_at: Instant | None
    last_run_at: Instant | None

    def ran(self, slot: int) -> "Standing":
        return self._replace(last_run_at=later_run(self.last_run_at, slot))


def later_run(last_run_at: Instant | None, slot: int) -> Instant:
    """When a schedule last ran, if it runs for a slot, which need not be its last one."""
    return Instant(max(last_run_at or 0, slot * SECOND))


def new_schedule(
    *, schedule_id: str, owner: str, cadence: Cadence, target: Target, policies: Policies, now: Instant
) -> Schedule:
    """Its slots begin strictly after now."""
    require_fires(cadence, after=now // SECOND)
    known = ScheduleId(text_of(schedule_id, field="id", longest=LONGEST_ID))
    require_no_own_key(known)
    if known.startswith(SYSTEM_PREFIX) and owner != SYSTEM:
        raise InvalidInput(
            "id", f"{SYSTEM_PREFIX!r} begins system schedules alone", fix="choose another id, or `duly sync`"
        )
    return Schedule(
        id=known,
        owner=Owner(text_of(owner, field="owner")),
        cadence=cadence,
        target=target,
        policies=policies,
        opened_through=now // SECOND,
        created_at=now,
        updated_at=now,
    ).planned()


def require_fires(cadence: Cadence, *, after: int) -> None:
    """A cadence that never fires again is a mistake, and said to be one before anything is written."""
    if not isinstance(cadence, Cadence):
        raise InvalidInput("cadence", f"is a {type(cadence).__name__}", fix="use cron(…), every(…) or once(…)")
    if cadence.next_second(after) is None:
        raise InvalidInput("cadence", "has no fire left", fix="choose a later instant")


def slot_key(schedule_id: ScheduleId, slot: int) -> str:
    """One slot, one key, on every engine: `{schedule_id}:{ISO instant}`."""
    return f"{schedule_id}:{_iso(slot)}"


@lru_cache(maxsize=1024)
def _iso(slot: int) -> str:
    """Kept, because what is due at once is mostly due in the same second."""
    return f"{datetime.fromtimestamp(slot, UTC):%Y-%m-%dT%H:%M:%SZ}"


def slot_of_key(key: str) -> datetime | None:
    """The slot that a run's key ends with, whatever stands before it; None if it ends with none."""
    try:
        return datetime.strptime(key[-20:], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def schedule_of_key(key: str, lane: str | None) -> ScheduleId:
    """The schedule that a slot's key names. Runs that share a lane are told by that, which says nothing else.

    Runs by hand and of backfills have their kind and a key of their own before it.
    """
    if lane is not None and lane.startswith(LANE_PREFIX):
        return ScheduleId(lane.removeprefix(LANE_PREFIX))
    return ScheduleId(schedule_before_slot(key[:-21]))


class UnknownSchedule(NotFound):
    code = "unknown_schedule"

    def __init__(self, schedule_id: str) -> None:
        super().__init__(f"there is no schedule {schedule_id!r}")
        self.schedule_id = schedule_id


class ScheduleExists(Conflict):
    code = "schedule_exists"

    def __init__(self, schedule_id: str) -> None:
        super().__init__(f"there is a schedule {schedule_id!r} already; edit it, or choose another id")
        self.schedule_id = schedule_id


class ScheduleChanged(Conflict):
    """Somebody else changed it since it was read."""

    code = "schedule_changed"

    def __init__(self, schedule_id: str, *, expected: int, found: int) -> None:
        super().__init__(
            f"schedule {schedule_id!r} is at revision {found}, not {expected}: read it again, then change it"
        )
        self.schedule_id = schedule_id
        self.expected = expected
        self.found = found
