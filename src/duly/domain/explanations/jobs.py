"""Why a job is as it is: where it came from, what became of each attempt, what it waits for, what to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from duly.domain.explanations.attempts import attempt_in_words, end_in_words
from duly.domain.explanations.facts import Explained, Fact, Subject, counted
from duly.domain.explanations.spending import Spending, spending_in_words
from duly.domain.explanations.waiting import Wait, waiting_in_words
from duly.domain.groups import Group, Member
from duly.domain.ids import JobId
from duly.domain.instants import Instant, written
from duly.domain.jobs import FinishedJob, Job, JobState, JobStatus
from duly.domain.templates import Origin

MOST_ATTEMPTS_TOLD = 20

_ANSWERS = {
    JobStatus.COMPLETED: "ran",
    JobStatus.FAILED: "failed",
    JobStatus.SKIPPED: "skipped",
    JobStatus.CANCELLED: "cancelled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """All that is recorded of a job. `chain` is what is kept of its attempts, first to last; `wait` is of the live one.

    `by_hand` says when attempts were asked for by a person.
    """

    job: Job | FinishedJob
    chain: Sequence[Job | FinishedJob]
    now: Instant
    wait: Wait | None = None
    origin: Origin | None = None
    group: Group | None = None
    member: Member | None = None
    by_hand: Mapping[JobId, Instant] = field(default_factory=dict)
    spending: Spending | None = None


def explain_job(facts: JobFacts) -> Explained:
    last = facts.chain[-1]
    told = [_what(facts), *_belongs(facts)]
    told += _attempts(facts)
    if isinstance(last, Job):
        if (asked_at := facts.by_hand.get(last.id)) is not None:
            sentence = f"Attempt {last.attempt} ({last.id}) was asked for by hand at {written(asked_at)}."
            told.append(Fact("by_hand", sentence, (last.id,)))
        told += waiting_in_words(last, facts.wait or Wait(now=facts.now))
    if facts.spending is not None:
        told = _spent(told, facts.spending, facts.now)
    if isinstance(last, FinishedJob):
        told += end_in_words(last, facts.by_hand, may_retry=facts.group is None or facts.group.takes_retries)
    return Explained(subject=Subject.JOB, id=facts.job.id, answer=answer_of(last), facts=told)


def _attempts(facts: JobFacts) -> Iterator[Fact]:
    """The newest of them, which say why it is as it is now."""
    ended = [each for each in facts.chain if isinstance(each, FinishedJob)]
    if untold := len(ended[:-MOST_ATTEMPTS_TOLD]):
        said = f"{counted(untold, 'earlier attempt')} {'is' if untold == 1 else 'are'} not told here"
        yield Fact("earlier_attempts", f"{said}; GET /api/v1/jobs/{facts.job.id}/chain lists them.", (facts.job.id,))
    for each in ended[-MOST_ATTEMPTS_TOLD:]:
        yield attempt_in_words(each, facts.by_hand)


def answer_of(last: Job | FinishedJob) -> str:
    if isinstance(last, FinishedJob):
        return _ANSWERS[last.status]
    return last.state.value if last.state in (JobState.RUNNING, JobState.CLAIMED) else "waiting"


def _what(facts: JobFacts) -> Fact:
    job, origin = facts.job, facts.origin
    made = "" if origin is None or origin.template is None else f", made from the template {origin.template!r}"
    version = f" (version {origin.template_version})" if made and origin and origin.template_version else ""
    key = "" if job.key is None else f", under the key {job.key!r}"
    sentence = (
        f"{job.id} is a job of kind {job.kind!r} in the pool {job.pool!r}, put at {written(job.created_at)}"
        f"{made}{version}{key}."
    )
    return Fact("put", sentence, (job.id,))


def _belongs(facts: JobFacts) -> Iterator[Fact]:
    job, group, member = facts.job, facts.group, facts.member
    if len(facts.chain) > 1 or job.attempt > 1:
        last = facts.chain[-1]
        now = "" if last.id == job.id else f"; the last is {last.id}"
        yield Fact("attempt", f"It is attempt {job.attempt} of the chain of {job.chain}{now}.", (job.chain, last.id))
    if job.ledger_run is not None:
        said = f"It runs for {job.ledger_run}; `duly why {job.ledger_run}` says what became of that."
        yield Fact("of_run", said, (job.ledger_run,))
    if group is not None and member is not None:
        name = f" {group.name!r}" if group.name else ""
        said = f"It is number {member.place + 1} of the {group.size} members of the {group.mode} group{name} {group.id}"
        yield Fact("of_group", f"{said}, which is {group.status}.", (group.id,))


def _spent(told: list[Fact], spending: Spending, now: Instant) -> list[Fact]:
    """Before what to do next, which stays the last."""
    spent = [Fact("spending", sentence) for sentence in spending_in_words(spending, now=now)]
    last = [fact for fact in told if fact.name == "next"]
    return [*(fact for fact in told if fact.name != "next"), *spent, *last]
