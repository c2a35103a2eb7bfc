"""Rows of groups and their members to domain objects and back."""

from duly.domain.groups import Group, GroupMode, GroupStatus, Member, MemberState
from duly.storage.executor import Row
from duly.storage.sql.rows import resources_text
from duly.storage.sql.snapshots import snapshot_from, snapshot_text


def group_from_row(row: Row) -> Group:
    return Group(
        id=row[0],
        owner=row[1],
        name=row[2],
        mode=GroupMode(row[3]),
        stop_on_failure=bool(row[4]),
        webhook_url=row[5],
        size=row[6],
        open=row[7],
        status=GroupStatus(row[8]),
        cancel_reason=row[9],
        created_at=row[10],
        ended_at=row[11],
    )


def member_from_row(row: Row) -> Member:
    return Member(
        group_id=row[0],
        place=row[1],
        name=row[2],
        job_id=row[3],
        state=MemberState(row[4]),
        reason=row[5],
        last_job=row[6],
        ended_at=row[7],
        snapshot=snapshot_from(row[8]),
    )


def member_row(member: Member) -> Row:
    """In the order of `insert_members`."""
    new = member.snapshot.new
    return (
        member.id,
        member.group_id,
        member.place,
        member.name,
        member.job_id,
        member.state.value,
        new.pool,
        resources_text(new.resources),
        snapshot_text(member.snapshot),
    )
