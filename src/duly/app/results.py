"""Waiting for the end of a job, through all its attempts."""

import asyncio
from typing import Any

from duly.bootstrap import Queue
from duly.domain.errors import InvalidInput
from duly.domain.groups import Group, GroupRunning, GroupStatus
from duly.domain.ids import GroupId, JobId
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import FinishedJob, JobFailed, JobNotEnded, JobStatus, Put, UnknownJob
from duly.domain.payloads import value_of
from duly.domain.runs import Run

# The end of a job need not be announced, so it is looked for: soon at first, then ever more seldom.
_FIRST_LOOK = Micros(SECOND // 50)
_SELDOM = Micros(SECOND)
# However much is announced, it is looked for no more often than this.
_PAUSE = Micros(SECOND // 100)

Awaited = str | Put | Run


async def result_of(queue: Queue, awaited: Awaited, *, timeout_s: float | None) -> Any:
    """What its handler answered; raises JobFailed if no attempt succeeded, JobNotEnded if time is up."""
    job_id = job_id_of(awaited)
    try:
        async with asyncio.timeout(timeout_s):
            job = await _ended(queue, job_id)
    except TimeoutError:
        raise JobNotEnded(job_id) from None
    if job.status in (JobStatus.FAILED, JobStatus.CANCELLED):
        raise JobFailed(job)
    return None if job.result is None else value_of(job.result)


async def end_of_group(queue: Queue, group_id: str, owner: str, *, timeout_s: float | None) -> Group:
    """The group once it has ended; raises GroupRunning if time is up."""
    wait = _FIRST_LOOK
    listener = queue.storage.wakeups.listen()
    try:
        async with asyncio.timeout(timeout_s):
            while (group := await queue.groups.get(group_id, owner=owner)).status is GroupStatus.RUNNING:
                await queue.storage.clock.sleep(_PAUSE)
                await listener.wait(wait)
                wait = Micros(min(2 * wait, _SELDOM))
            return group
    except TimeoutError:
        raise GroupRunning(GroupId(group_id)) from None
    finally:
        listener.close()


async def _ended(queue: Queue, job_id: JobId) -> FinishedJob:
    wait = _FIRST_LOOK
    listener = queue.storage.wakeups.listen()
    try:
        while True:
            attempts = await queue.jobs.chain(job_id)
            if not attempts:
                raise UnknownJob(job_id)
            if isinstance(last := attempts[-1], FinishedJob):
                return last
            await queue.storage.clock.sleep(_PAUSE)
            await listener.wait(wait)
            wait = Micros(min(2 * wait, _SELDOM))
    finally:
        listener.close()


def job_id_of(awaited: Awaited) -> JobId:
    match awaited:
        case Put():
            return awaited.job_id
        case Run():
            if awaited.job_id is None:
                raise InvalidInput("job", f"run {awaited.id} has no job to wait for", fix="ask why it was closed")
            return awaited.job_id
        case str():
            return JobId(awaited)
    raise InvalidInput("job", f"is a {type(awaited).__name__}", fix="pass what put or trigger answered, or a job's id")
