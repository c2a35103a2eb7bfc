"""What jobs and runs said, line by line, and what they go on to say."""

import sys
from typing import TYPE_CHECKING

from duly.cli.output import say, say_json
from duly.cli.shapes import at, log_line_shape
from duly.cli.waiting import LOOK_EVERY
from duly.domain.ids import JobId
from duly.domain.jobs import FinishedJob
from duly.domain.logs import LogLine

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_PAGE = 1_000


async def follow_job(queue: "Queue", job_id: str, *, follow: bool, as_json: bool) -> None:
    seen = 0
    while True:
        # Looked at before its lines: whatever a job said is kept before it ends.
        job = await queue.jobs.find(JobId(job_id), owner=None)
        seen = await tell_lines(queue, job.id, after=seen, as_json=as_json)
        if not follow or isinstance(job, FinishedJob):
            return
        await queue.storage.clock.sleep(LOOK_EVERY)


async def follow_run(queue: "Queue", run_id: str, *, follow: bool, as_json: bool) -> None:
    """Its attempts one after the other, as far as there are any."""
    seen: dict[JobId, int] = {}
    while True:
        run = await queue.runs.get(run_id, owner=None)
        for job in await queue.runs.attempts(run_id, owner=None):
            seen[job.id] = await tell_lines(
                queue, job.id, after=seen.get(job.id, 0), as_json=as_json, attempt=job.attempt
            )
        if not follow or run.status.is_terminal:
            return
        await queue.storage.clock.sleep(LOOK_EVERY)


async def tell_lines(queue: "Queue", job_id: JobId, *, after: int, as_json: bool, attempt: int | None = None) -> int:
    while lines := await queue.logs.lines(job_id, after=after, most=_PAGE):
        for line in lines:
            _say(line, as_json=as_json, attempt=attempt)
        after = lines[-1].seq
        sys.stdout.flush()  # whoever follows through a pipe sees each line when it comes
    return after


def _say(line: LogLine, *, as_json: bool, attempt: int | None) -> None:
    if as_json:
        which = {} if attempt is None else {"attempt": attempt, "job_id": line.job_id}
        say_json({**log_line_shape(line), **which})
    else:
        say(f"{at(line.at)} {line.level.value:<7} {line.text}")
