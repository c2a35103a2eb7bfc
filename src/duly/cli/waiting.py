"""Waiting for what was started to end, no longer than was asked for."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from duly.cli.given import span_from
from duly.cli.parser import Options
from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import FinishedJob, Job
from duly.domain.runs import Run
from duly.ports.clock import Clock

if TYPE_CHECKING:
    from duly.bootstrap import Queue

T = TypeVar("T")

LOOK_EVERY = Micros(SECOND // 4)


def deadline_of(options: Options, clock: Clock) -> Instant | None:
    """Asked before anything is started, so that a mistake starts nothing."""
    if options.timeout is None:
        return None
    if not options.wait:
        raise InvalidInput("--timeout", "bounds how long --wait waits", fix="add --wait")
    return Instant(clock.now() + span_from(options.timeout, field="--timeout"))


async def end_of_run(queue: "Queue", run_id: str, *, deadline: Instant | None) -> Run | None:
    """None if it has not ended by then."""
    return await _until(
        queue.storage.clock,
        lambda: queue.runs.get(run_id, owner=None),
        lambda run: run.status.is_terminal,
        deadline,
    )


async def end_of_job(queue: "Queue", job_id: JobId, *, deadline: Instant | None) -> FinishedJob | None:
    """The last attempt of a job, once no other follows it."""

    async def newest() -> Job | FinishedJob:
        chain = await queue.jobs.chain(job_id)
        return chain[-1] if chain else await queue.jobs.get(job_id)

    job = await _until(queue.storage.clock, newest, lambda job: isinstance(job, FinishedJob), deadline)
    return job if isinstance(job, FinishedJob) else None


async def _until(
    clock: Clock, look: Callable[[], Awaitable[T]], is_over: Callable[[T], bool], deadline: Instant | None
) -> T | None:
    while True:
        found = await look()
        if is_over(found):
            return found
        if deadline is not None and clock.now() >= deadline:
            return None
        await clock.sleep(LOOK_EVERY)
