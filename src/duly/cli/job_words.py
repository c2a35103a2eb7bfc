"""What `duly job` says of jobs: a row each, all of one, how one ended."""

from collections.abc import Sequence

from duly.cli import exits
from duly.cli.output import facts, note, say_json
from duly.cli.parser import Options
from duly.cli.shapes import at, job_shape
from duly.domain.jobs import FinishedJob, Job, JobStatus


def job_rows(jobs: Sequence[Job | FinishedJob]) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    return ("id", "kind", "pool", "state", "attempt", "run at", "started", "ended"), _rows(jobs)


def _rows(jobs: Sequence[Job | FinishedJob]) -> Sequence[Sequence[object]]:
    return [
        (
            job.id,
            job.kind,
            job.pool,
            job.status.value if isinstance(job, FinishedJob) else job.state.value,
            job.attempt,
            at(job.run_at),
            at(job.started_at),
            at(job.finished_at) if isinstance(job, FinishedJob) else None,
        )
        for job in jobs
    ]


def told_end(options: Options, ended: FinishedJob | None) -> int:
    if ended is None:
        note("duly: it did not end in time; it goes on")
        return exits.TIMED_OUT
    told_job(options, ended)
    return exits.OK if ended.status is JobStatus.COMPLETED else exits.FAILED


def told_job(options: Options, job: Job | FinishedJob) -> int:
    if options.json:
        say_json(job_shape(job))
    else:
        facts([(name.replace("_", " "), value) for name, value in job_shape(job).items()])
    return exits.OK
