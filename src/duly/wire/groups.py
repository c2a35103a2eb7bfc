"""Groups, their members and how far they are, in JSON."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, JsonValue

from duly.domain.errors import InvalidInput
from duly.domain.groups import Group as DomainGroup
from duly.domain.groups import GroupMode, GroupStatus, MemberState
from duly.domain.groups import Member as DomainMember
from duly.domain.groups import NewGroup as DomainNewGroup
from duly.domain.groups import NewMember as DomainNewMember
from duly.domain.groups import Progress as DomainProgress
from duly.domain.instants import moment_of
from duly.domain.payloads import value_of
from duly.wire.jobs import NewJob, new_job_of
from duly.wire.moments import Moment, moment_or_none
from duly.wire.shapes import Shape

_EXAMPLE: dict[str, JsonValue] = {
    "mode": "sequential",
    "members": [
        {"name": "count", "job": {"kind": "count"}},
        {"job": {"kind": "report", "params": {"total": {"from": "count", "path": "result.sold"}}}},
    ],
}

AnyMode = Annotated[GroupMode, Field(strict=False, description="All at once, or one after the other.")]


class NewMember(Shape):
    """Made from a template with params, or a job that is spelled out."""

    template: str | None = None
    params: dict[str, Any] | None = None
    job: NewJob | None = None
    name: Annotated[str | None, Field(description="For references of later members.")] = None

    def meant(self) -> DomainNewMember:
        job = None if self.job is None else new_job_of(self.job)
        return DomainNewMember(template=self.template, params=self.params, job=job, name=self.name)


class NewGroup(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    members: Annotated[list[NewMember], Field(min_length=1, max_length=1_000)]
    mode: AnyMode = GroupMode.PARALLEL
    stop_on_failure: Annotated[bool | None, Field(description="Of a sequence; true unless said otherwise.")] = None
    name: str = ""
    webhook_url: str | None = None

    def meant(self) -> DomainNewGroup:
        return DomainNewGroup(
            members=[_member_of(place, member) for place, member in enumerate(self.members)],
            mode=self.mode,
            stop_on_failure=self.stop_on_failure,
            name=self.name,
            webhook_url=self.webhook_url,
        )


def _member_of(place: int, member: NewMember) -> DomainNewMember:
    """What is wrong with one of them is said of that one."""
    try:
        return member.meant()
    except InvalidInput as wrong:
        where = wrong.field.removeprefix("members")
        within = where if where.startswith(".") or not where else f".job.{where}"
        raise InvalidInput(f"members[{place}]{within}", wrong.reason, fix=wrong.fix, position=wrong.position) from None


class Progress(Shape):
    """How many members stand where; the sum is the group's size."""

    pending: int
    live: int
    completed: int
    failed: int
    skipped: int
    cancelled: int


class Group(Shape):
    id: str
    owner: str
    name: str
    mode: GroupMode
    status: GroupStatus
    stop_on_failure: bool
    size: int
    open: Annotated[int, Field(description="Members that have not ended.")]
    cancel_reason: str | None
    webhook_url: str | None
    created_at: Moment
    ended_at: Moment | None


class GroupDetail(Group):
    progress: Progress


class Member(Shape):
    place: Annotated[int, Field(description="Counted from 0; references may name it.")]
    name: str | None
    state: Annotated[MemberState, Field(description="pending, live, or how its chain of attempts ended.")]
    reason: str | None
    kind: str
    template: str | None
    params: dict[str, Any]
    job_id: Annotated[str, Field(description="The first job of its chain; there is none while it is pending.")]
    last_job_id: str | None
    ended_at: Moment | None


def progress_shape(progress: DomainProgress) -> Progress:
    return Progress(**{state.value.lower(): progress[state] for state in MemberState})


def group_fields(group: DomainGroup) -> dict[str, Any]:
    return {
        "id": group.id,
        "owner": group.owner,
        "name": group.name,
        "mode": group.mode,
        "status": group.status,
        "stop_on_failure": group.stop_on_failure,
        "size": group.size,
        "open": group.open,
        "cancel_reason": group.cancel_reason,
        "webhook_url": group.webhook_url,
        "created_at": moment_of(group.created_at),
        "ended_at": moment_or_none(group.ended_at),
    }


def group_shape(group: DomainGroup) -> Group:
    return Group.model_construct(**group_fields(group))


def group_detail_shape(group: DomainGroup, progress: DomainProgress) -> GroupDetail:
    return GroupDetail.model_construct(**group_fields(group), progress=progress_shape(progress))


def member_shape(member: DomainMember) -> Member:
    return Member.model_construct(
        place=member.place,
        name=member.name,
        state=member.state,
        reason=member.reason,
        kind=member.snapshot.new.kind,
        template=member.snapshot.template,
        params=value_of(member.snapshot.new.payload),
        job_id=member.job_id,
        last_job_id=member.last_job,
        ended_at=moment_or_none(member.ended_at),
    )
