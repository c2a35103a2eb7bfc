"""Groups: jobs that belong together, all at once or one after the other, and end together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from duly.domain.errors import Conflict, InvalidInput, NotFound
from duly.domain.ids import GroupId, JobId, MemberId, Owner
from duly.domain.instants import Instant
from duly.domain.jobs import NewJob
from duly.domain.payloads import Payload, value_of
from duly.domain.templates import Snapshot, webhook_of
from duly.domain.texts import name_of, text_of, whole_number_of

MOST_MEMBERS = 1_000
PREDECESSOR_FAILED = "predecessor failed"
PREDECESSOR_CANCELLED = "predecessor cancelled"

_REFERENCE = {"from", "path"}


class GroupMode(StrEnum):
    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


class GroupStatus(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    CANCELLED = "CANCELLED"


class MemberState(StrEnum):
    """Where a member stands; a chain of retries counts as one member, and is live until its last attempt has ended."""

    PENDING = "pending"
    LIVE = "live"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"

    @property
    def is_open(self) -> bool:
        return self in (MemberState.PENDING, MemberState.LIVE)

    @property
    def ended_well(self) -> bool:
        return self in (MemberState.COMPLETED, MemberState.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMember:
    """A job to be made from a template with params, or one that is spelled out. Its name is for references."""

    template: str | None = None
    params: Mapping[str, Any] | None = None
    job: NewJob | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if (self.template is None) == (self.job is None):
            raise InvalidInput("members", "a member is made from a template or from a job", fix="give one of the two")
        if self.job is not None and self.params is not None:
            raise InvalidInput("members", "a job has its own params", fix="leave params out")
        if self.job is not None and self.job.key is not None:
            raise InvalidInput("members", "a key could make two members one job", fix="leave the key out")
        if self.name is not None:
            name_of(self.name, field="members.name")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGroup:
    """A sequential group stops at a failure unless told otherwise; a parallel one has nothing to stop."""

    members: Sequence[NewMember]
    mode: GroupMode = GroupMode.PARALLEL
    stop_on_failure: bool | None = None
    name: str = ""
    webhook_url: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _mode_of(self.mode))
        whole_number_of(len(self.members), field="members", least=1, most=MOST_MEMBERS)
        if self.name:
            text_of(self.name, field="name")
        if self.webhook_url is not None:
            webhook_of(self.webhook_url)
        names = [member.name for member in self.members if member.name is not None]
        if len(set(names)) < len(names):
            raise InvalidInput("members", "two of them have one name", fix="name each member once")
        if self.mode is GroupMode.PARALLEL and self.stop_on_failure:
            raise InvalidInput("stop_on_failure", "is for sequential groups", fix="leave it out, or use sequential")
        if self.stop_on_failure is None:
            object.__setattr__(self, "stop_on_failure", self.mode is GroupMode.SEQUENTIAL)


def _mode_of(mode: object) -> GroupMode:
    try:
        return GroupMode(str(mode))
    except ValueError:
        raise InvalidInput("mode", f"{str(mode)[:40]!r} is no mode", fix=f"use one of {', '.join(GroupMode)}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """`job_id` is the first job of its chain; `last_job` the one that ended the chain, if one did."""

    group_id: GroupId
    place: int
    name: str | None
    snapshot: Snapshot
    job_id: JobId
    state: MemberState = MemberState.PENDING
    reason: str | None = None
    last_job: JobId | None = None
    ended_at: Instant | None = None

    @property
    def id(self) -> MemberId:
        return member_id(self.group_id, self.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`open` members have not ended; the group ends with the last of them."""

    id: GroupId
    owner: Owner
    name: str
    mode: GroupMode
    stop_on_failure: bool
    webhook_url: str | None
    size: int
    open: int
    status: GroupStatus = GroupStatus.RUNNING
    cancel_reason: str | None = None
    created_at: Instant
    ended_at: Instant | None = None

    @property
    def takes_retries(self) -> bool:
        """Of single members. One that goes in order, or is being cancelled, has to have ended first."""
        is_busy = self.mode is GroupMode.SEQUENTIAL or self.cancel_reason is not None
        return not (is_busy and self.status is GroupStatus.RUNNING)

    def stops_after(self, state: MemberState) -> str | None:
        """Why nothing follows a member that ended so, or None if the next one does."""
        if state.ended_well or not self.stop_on_failure:
            return None
        return PREDECESSOR_CANCELLED if state is MemberState.CANCELLED else PREDECESSOR_FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How many members stand where; the states' sum is the group's size."""

    counts: Mapping[MemberState, int]

    def __getitem__(self, state: MemberState) -> int:
        return self.counts.get(state, 0)

    @property
    def size(self) -> int:
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        return sum(count for state, count in self.counts.items() if not state.is_open)


def status_of(counts: Mapping[MemberState, int], *, cancelled: bool) -> GroupStatus:
    """Terminal only when all members are."""
    states = {state for state, count in counts.items() if count}
    if any(state.is_open for state in states):
        return GroupStatus.RUNNING
    if all(state.ended_well for state in states):
        return GroupStatus.COMPLETED
    if cancelled or states == {MemberState.CANCELLED}:
        return GroupStatus.CANCELLED
    return GroupStatus.PARTIAL


def member_id(group_id: GroupId, place: int) -> MemberId:
    return MemberId(f"{group_id}:{place}")


def member_of(member: MemberId) -> tuple[GroupId, int]:
    group_id, _, place = member.rpartition(":")
    return GroupId(group_id), int(place)


class Outcome(NamedTuple):
    """What a member's chain left, for those after it."""

    state: MemberState
    result: Payload | None
    artifacts: Sequence[Mapping[str, Any]]


class Reference(NamedTuple):
    """`{"from": member, "path": "result.x"}` in params: a member's index or name, and where to look."""

    source: int | str
    path: str

    def place(self, names: Mapping[str, int], *, before: int, field: str) -> int:
        """The member it means, one of those before."""
        place = names.get(self.source) if isinstance(self.source, str) else self.source
        if place is None or isinstance(place, bool) or not 0 <= place < before:
            raise InvalidInput(f"{field}.from", f"{self.source!r:.60} is no member before this one")
        return place

    def find(self, outcome: Outcome | None, *, field: str) -> Any:
        if outcome is None:
            raise InvalidInput(field, f"member {self.source!r} has left nothing that is still kept")
        root, *steps = self.path.split(".")
        if root == "result" and outcome.result is None:
            raise InvalidInput(field, f"member {self.source!r} ended {outcome.state} without a result")
        value: Any = value_of(outcome.result) if root == "result" and outcome.result else list(outcome.artifacts)
        for step in steps:
            value = _below(value, step, self, field)
        return value


def _below(value: Any, step: str, reference: Reference, field: str) -> Any:
    if isinstance(value, dict) and step in value:
        return value[step]
    if isinstance(value, list) and step.isascii() and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    raise InvalidInput(field, f"member {reference.source!r} has no {reference.path}: there is no {step!r}")


def references_of(params: object, *, field: str = "params") -> list[tuple[str, Reference]]:
    """Every reference in params, with its place."""
    if isinstance(params, dict):
        if params.keys() == _REFERENCE:
            return [(field, _reference(params, field))]
        return [found for name, item in params.items() for found in references_of(item, field=f"{field}.{name}")]
    if isinstance(params, list):
        return [found for index, item in enumerate(params) for found in references_of(item, field=f"{field}[{index}]")]
    return []


def _reference(given: Mapping[str, Any], field: str) -> Reference:
    source, path = given["from"], given["path"]
    if not isinstance(source, (int, str)) or isinstance(source, bool):
        raise InvalidInput(f"{field}.from", "is neither a member's index nor its name")
    if not isinstance(path, str) or path.split(".")[0] not in ("result", "artifacts"):
        raise InvalidInput(f"{field}.path", "leads nowhere", fix="begin with result or artifacts, as in result.total")
    return Reference(source, path)


def resolved(params: Any, find: Callable[[Reference, str], Any], *, field: str = "params") -> Any:
    """The params with what their references lead to in their places."""
    if isinstance(params, dict):
        if params.keys() == _REFERENCE:
            return find(_reference(params, field), field)
        return {name: resolved(item, find, field=f"{field}.{name}") for name, item in params.items()}
    if isinstance(params, list):
        return [resolved(item, find, field=f"{field}[{index}]") for index, item in enumerate(params)]
    return params


class UnknownGroup(NotFound):
    code = "unknown_group"

    def __init__(self, group_id: GroupId) -> None:
        super().__init__(f"there is no group {group_id!r}")
        self.group_id = group_id


class GroupAlreadyEnded(Conflict):
    code = "group_already_ended"

    def __init__(self, group_id: GroupId, status: GroupStatus) -> None:
        super().__init__(f"group {group_id} has already ended: {status}")
        self.group_id = group_id
        self.status = status


class GroupRunning(Conflict):
    """What runs in order is tried again when it has ended, not beside itself."""

    code = "group_running"

    def __init__(self, group_id: GroupId) -> None:
        super().__init__(f"group {group_id} is still running; wait for its end, or cancel it first")
        self.group_id = group_id
