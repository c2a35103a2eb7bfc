"""A run that goes on: asked to stop when it must, given up when it does not."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import Ending, Suspended
from duly.domain.sessions import ClaimedJob
from duly.worker.handlers import ending_of, failure, failure_of

STOPPED = failure("stopped by its worker")


class JobRun:
    """Ends once, as `on_end` is told: with what its handler answered, or, when it was given up, without.

    One that was given up may go on for as long as it likes. It keeps its executor, and nobody hears what it says;
    `on_gone` is told when it is over at last.
    """

    __slots__ = (
        "_asked",
        "_is_overdue",
        "_on_end",
        "_on_gone",
        "_patience",
        "_timer",
        "begun_at",
        "is_given_up",
        "job",
        "task",
    )

    def __init__(
        self,
        job: ClaimedJob,
        entered: Awaitable[object],
        *,
        patience: Micros,
        on_end: Callable[["JobRun", Ending | Suspended], None],
        on_gone: Callable[["JobRun"], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.job = job
        self.begun_at = loop.time()
        self.is_given_up = False
        self._asked: Ending | None = None
        self._is_overdue = False
        self._patience = patience
        self._on_end = on_end
        self._on_gone = on_gone
        self._timer: asyncio.TimerHandle | None = None
        if job.timeout_ms is not None:
            self._timer = loop.call_later(job.timeout_ms / 1000, self._time_out)
        self.task = loop.create_task(self._go(entered))

    def stop(self, ending: Ending = STOPPED) -> None:
        """Asks the handler to stop, once; this is how the run ends if it then does."""
        if self._asked is not None or self.task.done():
            return
        loop = asyncio.get_running_loop()
        self._asked = ending
        self._drop_timer()
        self._timer = loop.call_later(self._patience / SECOND, self.give_up)
        # Later, because a task that is cancelled before its first step never says how it ended.
        loop.call_soon(self.task.cancel)

    def give_up(self) -> None:
        """Whatever it still does is void."""
        if self.is_given_up or self.task.done():
            return
        self.is_given_up = True
        asked = self._asked or STOPPED
        self._on_end(self, replace(asked, error=f"{asked.error}, and goes on: its executor is lost until it ends"))

    def _time_out(self) -> None:
        self._is_overdue = True
        self.stop(failure(f"timed out after {self.job.timeout_ms} ms"))

    async def _go(self, entered: Awaitable[object]) -> None:
        ending: Ending | Suspended
        try:
            answer = await entered
            ending = answer if isinstance(answer, Suspended) else ending_of(answer)
        except KeyboardInterrupt:
            raise
        except asyncio.CancelledError as error:
            ending = self._asked or failure_of(error)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its run's failure, not the worker's
            ending = failure_of(error)
        self._drop_timer()
        if self.is_given_up:
            self._on_gone(self)
        else:
            # Its time was up: what it did after that does not count.
            self._on_end(self, (self._asked if self._is_overdue else None) or ending)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
