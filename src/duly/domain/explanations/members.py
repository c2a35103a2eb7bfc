"""Why a member of a group has no job: it is to be put later, or never was."""

from duly.domain.explanations.explanation import first_line
from duly.domain.explanations.facts import Explained, Fact, Subject
from duly.domain.groups import Group, Member, MemberState
from duly.domain.instants import written


def explain_unput(group: Group, member: Member) -> Explained | None:
    """None for one that was put: what became of its job is the job's to say, as long as it is kept."""
    name = f" {group.name!r}" if group.name else ""
    of = f"member {member.place + 1} of {group.size} of the {group.mode} group{name} {group.id}"
    said = f"{member.job_id} is the job of {of}, which is {group.status}."
    told = [Fact("of_group", said, (member.job_id, group.id))]
    look = Fact("next", f"`duly why {group.id}` says how far the group is.", (group.id,))
    if member.state is MemberState.PENDING:
        told += [Fact("not_put", "It is not put yet: it waits for the end of those before it."), look]
        return Explained(subject=Subject.JOB, id=member.job_id, answer="waiting", facts=told)
    if member.state is MemberState.CANCELLED and member.last_job is None:
        at = "" if member.ended_at is None else f" at {written(member.ended_at)}"
        why = f": {first_line(member.reason)}" if member.reason else ""
        told += [Fact("never_put", f"It was never put, and was cancelled{at}{why}."), look]
        return Explained(subject=Subject.JOB, id=member.job_id, answer="cancelled", facts=told)
    return None
