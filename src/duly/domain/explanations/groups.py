"""Why a group is as it is: how far it has come, who holds it up, and who failed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from duly.domain.explanations.explanation import first_line
from duly.domain.explanations.facts import MOST_NAMED, Explained, Fact, Subject, counted, several
from duly.domain.groups import Group, GroupMode, GroupStatus, Member, MemberState
from duly.domain.ids import JobId
from duly.domain.instants import Instant, written
from duly.domain.jobs import FinishedJob, Job, JobState

_WORDS = {
    MemberState.COMPLETED: "completed",
    MemberState.FAILED: "failed",
    MemberState.SKIPPED: "skipped",
    MemberState.CANCELLED: "cancelled",
    MemberState.LIVE: "live",
    MemberState.PENDING: "not put yet",
}
_ANSWERS = {
    GroupStatus.RUNNING: "running",
    GroupStatus.COMPLETED: "ran",
    GroupStatus.PARTIAL: "partial",
    GroupStatus.CANCELLED: "cancelled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """`members` are all of them, in their places; `jobs` are the last jobs of those that are live or have failed."""

    group: Group
    members: Sequence[Member]
    now: Instant
    jobs: Mapping[JobId, Job | FinishedJob] = field(default_factory=dict)


def explain_group(facts: GroupFacts) -> Explained:
    group = facts.group
    told = [_what(group), _progress(facts), *_stopping(group)]
    told += _open(facts) if group.status is GroupStatus.RUNNING else []
    told += _failed(facts)
    told += _given_up(facts)
    if group.status in (GroupStatus.PARTIAL, GroupStatus.CANCELLED):
        retry = f"Try the members again that failed or were cancelled with `duly group retry {group.id}`."
        told.append(Fact("next", retry, (group.id,)))
    return Explained(subject=Subject.GROUP, id=group.id, answer=_ANSWERS[group.status], facts=told)


def _what(group: Group) -> Fact:
    name = f" {group.name!r}" if group.name else ""
    how = "one after the other" if group.mode is GroupMode.SEQUENTIAL else "all at once"
    stops = ", up to the first that fails" if group.stop_on_failure else ""
    made = f"{group.id} is a group{name} of {counted(group.size, 'member')}, {how}{stops}"
    return Fact("made", f"{made}, made by {group.owner} at {written(group.created_at)}.", (group.id,))


def _progress(facts: GroupFacts) -> Fact:
    group = facts.group
    counts = {state: sum(member.state is state for member in facts.members) for state in _WORDS}
    parts = several([f"{count} {_WORDS[state]}" for state, count in counts.items() if count] or ["no members"])
    if group.ended_at is None:
        return Fact("progress", f"It is {group.status}: {parts}.")
    return Fact("ended", f"It ended {group.status} at {written(group.ended_at)}: {parts}.")


def _stopping(group: Group) -> Iterator[Fact]:
    if group.cancel_reason is not None:
        yield Fact("cancelled", f"It was cancelled: {group.cancel_reason}.")


def _open(facts: GroupFacts) -> Iterator[Fact]:
    """Who holds it up: what is live; what is not put yet waits for that."""
    live = [member for member in facts.members if member.state is MemberState.LIVE]
    for member in live[:MOST_NAMED]:
        job = facts.jobs.get(member.job_id)
        yield Fact("live", f"{_member(member)} is {_standing(job)}.", (job.id if job is not None else member.job_id,))
    if (more := len(live) - MOST_NAMED) > 0:
        yield Fact("live", f"{counted(more, 'member')} more {'is' if more == 1 else 'are'} live.")
    pending = [member for member in facts.members if member.state is MemberState.PENDING]
    if pending and live:
        waits = f"{_members(pending)} {_waits(pending)} for the end of {_member(live[0], first=False)}"
        yield Fact("predecessor", f"{waits}.", (live[0].job_id,))


def _standing(job: Job | FinishedJob | None) -> str:
    if not isinstance(job, Job):
        return "live"
    attempt = f"attempt {job.attempt} of {job.retry.max_attempts}"
    ask = "" if job.is_locked else f"; `duly why {job.id}` says for what it waits"
    since = "" if job.started_at is None else f" since {written(job.started_at)}"
    due = f" until {written(job.run_at)}" if job.state in (JobState.SCHEDULED, JobState.BACKOFF) else ""
    return f"{job.state}{since}{due} as {job.id}, {attempt}{ask}"


def _failed(facts: GroupFacts) -> Iterator[Fact]:
    failed = [member for member in facts.members if member.state is MemberState.FAILED]
    for member in failed[:MOST_NAMED]:
        job = facts.jobs.get(member.job_id)
        error = job.error if isinstance(job, FinishedJob) else member.reason
        ended = "" if member.ended_at is None else f" at {written(member.ended_at)}"
        tries = f" after {counted(job.attempt, 'attempt')}" if isinstance(job, FinishedJob) else ""
        said = f": {first_line(error)}" if error else ""
        yield Fact(
            "member_failed", f"{_member(member)} failed{ended}{tries}{said}.", (member.last_job or member.job_id,)
        )
    if (more := len(failed) - MOST_NAMED) > 0:
        yield Fact("member_failed", f"{counted(more, 'member')} more failed.")


def _given_up(facts: GroupFacts) -> Iterator[Fact]:
    """Those that were cancelled, by reason."""
    reasons: dict[str, list[Member]] = {}
    for member in facts.members:
        if member.state is MemberState.CANCELLED:
            reasons.setdefault(member.reason or "", []).append(member)
    for reason, members in reasons.items():
        verb = "was" if len(members) == 1 else "were"
        said = f": {first_line(reason)}" if reason else ""
        yield Fact("member_cancelled", f"{_members(members)} {verb} cancelled{said}.")


def _member(member: Member, *, first: bool = True) -> str:
    name = f" ({member.name})" if member.name else ""
    return f"{'Member' if first else 'member'} {member.place + 1}{name}"


def _members(members: Sequence[Member]) -> str:
    if len(members) == 1:
        return _member(members[0])
    names = [str(member.place + 1) for member in members[:MOST_NAMED]]
    more = len(members) - len(names)
    return f"Members {several([*names, *([f'{more} more'] if more else [])])}"


def _waits(members: Sequence[Member]) -> str:
    return "waits" if len(members) == 1 else "wait"
