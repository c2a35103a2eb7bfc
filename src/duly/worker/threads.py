"""Plain functions as handlers, each run in a thread: they may block, and stop only if they look."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from duly.domain.jobs import Ending
from duly.domain.sessions import ClaimedJob
from duly.worker.calls import Call, Fitted
from duly.worker.context import JobContext
from duly.worker.handlers import Handler, ending_of, failure_of
from duly.worker.job_log import JobLog
from duly.worker.logbook import open_log
from duly.worker.traces import tell_trace


def in_thread(function: Callable[..., object]) -> Handler:
    """Calls a function with the job's params, in a thread of its own for as long as it runs.

    There are as many threads as there are runs, and those are bounded by the worker's executors: one whose function
    does not end when it is asked to is a lost executor. Such a thread does not keep the process from ending.
    """
    call = Call(function)

    async def handler(job: ClaimedJob) -> object:
        asked = threading.Event()
        with open_log(job) as log:
            answer = _started(call, JobContext(job, log, asked.is_set), log)
            try:
                return await asyncio.shield(answer)
            except asyncio.CancelledError:
                asked.set()
                return await answer  # whoever asks once more means it, and lets go of the thread

    return Fitted(call, handler)


def _started(call: Call, context: JobContext, log: JobLog) -> "asyncio.Future[Ending]":
    """The ending is made in the thread: a large result must not hold up the event loop."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Ending] = loop.create_future()
    process = os.getpid()

    def run() -> None:
        try:
            ending = ending_of(call(context))
        except asyncio.CancelledError:
            ending = None
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its run's failure, not the worker's
            if os.getpid() == process:
                tell_trace(log, error)
            ending = failure_of(error)
        if os.getpid() != process:
            os._exit(0)  # a copy that the function forked has nothing to report
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            loop.call_soon_threadsafe(_settle, answer, ending)

    threading.Thread(target=run, name=f"duly {context.kind}", daemon=True).start()
    return answer


def _settle(answer: "asyncio.Future[Ending]", ending: Ending | None) -> None:
    if answer.done():
        return
    if ending is None:
        answer.cancel()
    else:
        answer.set_result(ending)
