"""What `duly job` says of jobs: a row each, all of one, how one ended."""

from duly.cli import exits
from duly.cli.listing import Listing
from duly.cli.output import note, tell
from duly.cli.parser import Options
from duly.cli.shapes import at, job_shape
from duly.domain.jobs import FinishedJob, Job, JobStatus


def jobs_listing(*, empty: str) -> Listing[Job | FinishedJob]:
    return Listing(
        heads=("id", "kind", "pool", "state", "attempt", "run at", "started", "ended"),
        row=_row,
        shape=job_shape,
        key=lambda job: job.id,
        empty=empty,
    )


def _row(job: Job | FinishedJob) -> tuple[object, ...]:
    state, ended = (job.status.value, job.finished_at) if isinstance(job, FinishedJob) else (job.state.value, None)
    return (job.id, job.kind, job.pool, state, job.attempt, at(job.run_at), at(job.started_at), at(ended))


def told_end(options: Options, ended: FinishedJob | None) -> int:
    if ended is None:
        note("duly: it did not end in time; it goes on")
        return exits.TIMED_OUT
    told_job(options, ended)
    return exits.OK if ended.status is JobStatus.COMPLETED else exits.FAILED


def told_job(options: Options, job: Job | FinishedJob) -> int:
    tell(options, lambda: job_shape(job))
    return exits.OK
