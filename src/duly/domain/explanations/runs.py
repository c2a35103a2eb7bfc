"""What became of a run, from its row and from the jobs that are still kept."""

from collections.abc import Iterator, Sequence

from duly.domain.explanations.explanation import first_line, lasting, why
from duly.domain.instants import written
from duly.domain.jobs import FinishedJob, Job, JobState, JobStatus
from duly.domain.runs import Run, RunStatus

ANSWERS = {
    RunStatus.PENDING: "waiting",
    RunStatus.RUNNING: "running",
    RunStatus.SUCCESS: "ran",
    RunStatus.ERROR: "failed",
    RunStatus.SKIPPED: "skipped",
    RunStatus.CANCELLED: "cancelled",
}

Jobs = Sequence[Job | FinishedJob]


def run_in_words(run: Run, jobs: Jobs, reviews: Sequence[str] = ()) -> Iterator[str]:
    """`jobs` is the chain of its attempts, first to last; empty if it had none, or if they were pruned."""
    late = run.opened_at - run.fire_at
    drift = f"{lasting(late)} after its time" if late >= 0 else f"{lasting(-late)} before its time"
    yield f"It was opened at {written(run.opened_at)}, {drift}, as {run.id}."
    yield from _failed_attempts(run, jobs)
    if reviews:
        yield from reviews
    if not reviews or run.status.is_terminal:
        yield _outcome(run, jobs)


def _failed_attempts(run: Run, jobs: Jobs) -> Iterator[str]:
    for job in jobs:
        is_last = run.status.is_terminal and job is jobs[-1]
        if isinstance(job, FinishedJob) and job.status is JobStatus.FAILED and not is_last:
            error = f": {first_line(job.error)}" if job.error else ""
            yield f"Attempt {job.attempt} ({job.id}) failed at {written(job.finished_at)}{error}."


def _outcome(run: Run, jobs: Jobs) -> str:
    if not run.status.is_terminal:
        return _in_flight(run, jobs)
    ended = written(run.completed_at) if run.completed_at is not None else "an unknown time"
    attempts = "1 attempt" if run.attempt_count == 1 else f"{run.attempt_count} attempts"
    match run.status:
        case RunStatus.SUCCESS if run.started_at is not None and run.completed_at is not None:
            took = lasting(max(run.completed_at - run.started_at, 0))
            return f"It ran from {written(run.started_at)} to {ended} ({took}, {attempts}), and succeeded."
        case RunStatus.SUCCESS:
            return f"It succeeded at {ended}."
        case RunStatus.ERROR:
            made = f" after {attempts}" if run.attempt_count else ""
            return f"It failed at {ended}{made}{why(run.reason, run.error_message)}."
        case _:
            return f"It was {run.status} at {ended}{why(run.reason, run.detail)}."


def _in_flight(run: Run, jobs: Jobs) -> str:
    job = jobs[-1] if jobs else None
    if not isinstance(job, Job):
        return f"It is {run.status}, but none of its jobs is live: it is stuck, and `duly audit` says so."
    attempt = f"attempt {job.attempt} of {job.retry.max_attempts}"
    match job.state:
        case JobState.RUNNING | JobState.CLAIMED:
            since = "" if job.started_at is None else f", since {written(job.started_at)}"
            return f"It is {job.state} in session {job.session}: {job.id}, {attempt}{since}."
        case JobState.SCHEDULED | JobState.BACKOFF:
            return f"It waits until {written(job.run_at)}: {job.id}, {attempt}."
        case JobState.WAITING:
            return f"It waits for an earlier job of its lane: {job.id}, {attempt}."
        case JobState.PARKED:
            return f"It waits for a resource that is full: {job.id}, {attempt}."
        case JobState.READY:
            return f"It waits for a worker of the pool {job.pool!r}: {job.id}, {attempt}."
