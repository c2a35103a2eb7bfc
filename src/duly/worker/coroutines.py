"""Async functions as handlers: they share the worker's event loop, and are cancelled as coroutines are."""

import asyncio
from collections.abc import Awaitable, Callable

from duly.domain.sessions import ClaimedJob
from duly.worker.calls import Call, Fitted
from duly.worker.context import JobContext
from duly.worker.handlers import Handler
from duly.worker.logbook import open_log
from duly.worker.traces import tell_trace


def in_loop(function: Callable[..., Awaitable[object]]) -> Handler:
    """Calls an async function with the job's params."""
    call = Call(function)

    async def handler(job: ClaimedJob) -> object:
        task = asyncio.current_task()
        with open_log(job) as log:
            try:
                return await call(JobContext(job, log, lambda: task is not None and task.cancelling() > 0))
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                tell_trace(log, error)
                raise

    return Fitted(call, handler)
