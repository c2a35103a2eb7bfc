"""What is said once a job was put, whichever command put it."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.job_words import told_end
from duly.cli.output import note, tell
from duly.cli.parser import Options
from duly.cli.waiting import end_of_job
from duly.domain.instants import Instant
from duly.domain.jobs import Put

if TYPE_CHECKING:
    from duly.bootstrap import Queue


async def told_put(queue: "Queue", options: Options, done: Put, *, kind: str, deadline: Instant | None) -> int:
    """Who would run it, if nobody does; with --wait how it ended."""
    if warning := await queue.sessions.warning_about(kind):
        note(f"warning: {warning}")
    if options.wait:
        note(f"waiting for {done.job_id}")
        return told_end(options, await end_of_job(queue, done.job_id, deadline=deadline))
    sentence = f"{done.outcome.value} {done.job_id}; follow it: duly job log {done.job_id} --follow"
    tell(options, lambda: {"id": done.job_id, "outcome": done.outcome.value}, sentence)
    return exits.OK
