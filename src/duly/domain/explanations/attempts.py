"""What became of each attempt that has ended, and why there is no other."""

from collections.abc import Iterator, Mapping

from duly.domain.explanations.explanation import first_line, lasting
from duly.domain.explanations.facts import Fact, counted
from duly.domain.ids import JobId
from duly.domain.instants import Instant, written
from duly.domain.jobs import FinishedJob, JobStatus

_ENDS = {
    JobStatus.COMPLETED: "completed",
    JobStatus.FAILED: "failed",
    JobStatus.SKIPPED: "was skipped",
    JobStatus.CANCELLED: "was cancelled",
}


def attempt_in_words(job: FinishedJob, by_hand: Mapping[JobId, Instant]) -> Fact:
    asked_at = by_hand.get(job.id)
    asked = "" if asked_at is None else f", asked for by hand at {written(asked_at)},"
    code = "" if job.exit_code is None else f" with exit code {job.exit_code}"
    said = f": {first_line(job.error)}" if job.error else ""
    ended = f"{_ENDS[job.status]} at {written(job.finished_at)}{code}{said}"
    who = f"Attempt {job.attempt} ({job.id}){asked}"
    if job.started_at is None:
        return Fact(f"attempt_{job.status.lower()}", f"{who} never started, and {ended}.", (job.id,))
    where = "" if job.session is None else f" in session {job.session}"
    took = lasting(max(job.finished_at - job.started_at, 0))
    sentence = f"{who} began at {written(job.started_at)}{where}, and after {took} {ended}."
    return Fact(f"attempt_{job.status.lower()}", sentence, (job.id,))


def end_in_words(last: FinishedJob, by_hand: Mapping[JobId, Instant], *, may_retry: bool = True) -> Iterator[Fact]:
    """Why the chain ended with this one, and how to go on if it may."""
    if last.status is JobStatus.FAILED:
        if not last.retryable:
            yield Fact("not_retryable", "It is not tried again by itself: its last failure says it would not help.")
        elif last.attempt >= last.max_attempts:
            # Every retry by hand renews what the policy allows, so then the count is of both.
            allows = "its policy and retries by hand allow" if by_hand else "its policy allows"
            left = f"{allows} {counted(last.max_attempts, 'attempt')}"
            yield Fact("exhausted", f"It is not tried again by itself: {left}, and all are used up.")
    if may_retry and last.status in (JobStatus.FAILED, JobStatus.CANCELLED):
        yield Fact("next", f"Retry it with `duly job retry {last.id}`.", (last.id,))
