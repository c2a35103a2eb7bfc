"""A run as server-sent events: every line once, however often the client comes back."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from duly.domain.errors import DulyError
from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import JobId
from duly.domain.instants import SECOND, Micros, moment_of
from duly.domain.jobs import FinishedJob, Job, UnknownJob
from duly.domain.logs import LogLine, Progress
from duly.domain.reviews import ReviewState
from duly.domain.runs import Run
from duly.http.closing import Closing
from duly.http.use_cases import UseCases
from duly.ports.wakeups import Listener
from duly.wire.executions import event_shape
from duly.wire.reviews import review_shape
from duly.wire.runs import EndEvent, LogEvent, ProgressEvent, run_shape

LOOK_EVERY = Micros(SECOND)
# Hints come as fast as the queue works; nobody reads that fast.
LOOK_AT_MOST_EVERY = Micros(SECOND // 10)
HEARTBEAT_EVERY = Micros(15 * SECOND)
# A token that is revoked ends its streams, too.
WELCOME_FOR = Micros(5 * SECOND)
LINES_AT_ONCE = 200
# Each may be as large as a page of text: a stream holds no more of them than this.
EVENTS_AT_ONCE = 50
HEARTBEAT = b": still here\n\n"

_WRITTEN = re.compile(r"(\d{1,9})\.(\d{1,18})(?:\.g(\d{1,18}))?(\.end)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """The last line sent: its attempt, its number; the graph's last event; and whether the end was sent after them."""

    attempt: int = 0
    seq: int = 0
    has_ended: bool = False
    told: int = 0

    @classmethod
    def of(cls, last_event_id: str | None) -> "Place":
        """From an event's id; anything else begins anew."""
        found = _WRITTEN.fullmatch(last_event_id or "")
        return cls() if found is None else cls(int(found[1]), int(found[2]), found[4] is not None, int(found[3] or 0))

    def __str__(self) -> str:
        told = f".g{self.told}" if self.told else ""
        return f"{self.attempt}.{self.seq}{told}{'.end' if self.has_ended else ''}"


@dataclass(slots=True)
class RunEvents:
    """Reads a little, sends it, then reads on: a slow client holds up nobody, and nothing is piled up for it."""

    queue: UseCases
    run_id: str
    sees: str | None
    place: Place
    closing: Closing
    require_welcome: Callable[[], Awaitable[object]]
    _welcome_at: Micros = field(default=Micros(0))
    _told: tuple[object, ...] = ()
    _reviews: dict[str, ReviewState] = field(default_factory=dict)
    _progress: dict[JobId, Progress] = field(default_factory=dict)

    async def stream(self) -> AsyncIterator[bytes]:
        """Ends after the run, or before it with the server, the store or the caller's token; clients then come back."""
        # Before the first look: what changes after it is heard.
        listener = self.queue.storage.wakeups.listen()
        try:
            async with self.closing.entered() as is_closing:
                async for event in self._events(listener, is_closing):
                    yield event
        except DulyError:
            return
        finally:
            listener.close()

    async def _events(self, listener: Listener, is_closing: asyncio.Event) -> AsyncIterator[bytes]:
        clock = self.queue.storage.clock
        sent_at = self._welcome_at = clock.lease_now()
        while not is_closing.is_set():
            began = clock.lease_now()
            # The run before its lines: all lines of a run that has ended are there.
            run = await self.queue.runs.get(self.run_id, owner=self.sees)
            async for event in self._news(run):
                sent_at = clock.lease_now()
                yield event
                await self._stay_welcome()
            if run.status.is_terminal:
                self.place = replace(self.place, has_ended=True)
                yield _event("end", EndEvent(status=run.status), self.place)
                return
            if clock.lease_now() - sent_at >= HEARTBEAT_EVERY:
                sent_at = clock.lease_now()
                yield HEARTBEAT
            await self._stay_welcome()
            await self._pause(listener, is_closing, began)

    async def _stay_welcome(self) -> None:
        """Asked between events, too: what a run said may take long to read."""
        now = self.queue.storage.clock.lease_now()
        if now - self._welcome_at >= WELCOME_FOR:
            self._welcome_at = now
            await self.require_welcome()

    async def _pause(self, listener: Listener, is_closing: asyncio.Event, began: Micros) -> None:
        """Until something may have changed, a second has passed, or the server stops."""
        clock = self.queue.storage.clock
        await _first(is_closing.wait(), listener.wait(LOOK_EVERY))
        early = LOOK_AT_MOST_EVERY - (clock.lease_now() - began)
        if early > 0 and not is_closing.is_set():
            await _first(is_closing.wait(), clock.sleep(Micros(early)))

    async def _news(self, run: Run) -> AsyncIterator[bytes]:
        """A status comes before the lines of what it began, and after those of what it ended."""
        shape = run_shape(run)
        is_news = self._told != (shape.status, shape.attempt_count, shape.job_id)
        self._told = (shape.status, shape.attempt_count, shape.job_id)
        if is_news and not run.status.is_terminal:
            yield _event("status", shape)
        if run.job_id is not None:
            attempts = await self.queue.runs.attempts(self.run_id, owner=self.sees)
            for job in attempts:
                if job.attempt >= self.place.attempt:
                    async for event in self._said(job):
                        yield event
            # Of a pruned job nobody knows what it ran; the run does, if it was a graph.
            if run.run_id is not None or any(job.kind == GRAPH_RUN for job in attempts):
                async for event in self._told_by_graph():
                    yield event
        async for event in self._reviewed(run):
            yield event
        if is_news and run.status.is_terminal:
            yield _event("status", shape)

    async def _reviewed(self, run: Run) -> AsyncIterator[bytes]:
        """What its execution asks people, and how that was decided."""
        if run.run_id is None:
            return
        for review in await self.queue.reviews.of_run(run.run_id, owner=run.owner):
            if self._reviews.get(review.id) is not review.state:
                self._reviews[review.id] = review.state
                yield _event("review", review_shape(review))

    async def _said(self, job: Job | FinishedJob) -> AsyncIterator[bytes]:
        while lines := await self._lines(job):
            for line in lines:
                self.place = Place(job.attempt, line.seq, told=self.place.told)
                yield _event("log", _line(job, line), self.place)
            if len(lines) < LINES_AT_ONCE:
                break
        progress = await self._newest_progress(job.id)
        if progress is not None and progress != self._progress.get(job.id):
            self._progress = {job.id: progress}
            yield _event("progress", _progress(job, progress))

    async def _told_by_graph(self) -> AsyncIterator[bytes]:
        while events := await self.queue.execution_events.of_run(
            self.run_id, owner=self.sees, after=self.place.told, most=EVENTS_AT_ONCE
        ):
            for event in events:
                self.place = replace(self.place, told=event.seq)
                yield _event("graph", event_shape(event), self.place)
            if len(events) < EVENTS_AT_ONCE:
                break

    async def _lines(self, job: Job | FinishedJob) -> list[LogLine]:
        after = self.place.seq if job.attempt == self.place.attempt else 0
        try:
            return await self.queue.logs.lines(job.id, after=after, most=LINES_AT_ONCE)
        except UnknownJob:  # pruned since it was found
            return []

    async def _newest_progress(self, job_id: JobId) -> Progress | None:
        try:
            return await self.queue.logs.progress(job_id)
        except UnknownJob:
            return None


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    """Until one of them is over; the others are given up."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _line(job: Job | FinishedJob, line: LogLine) -> LogEvent:
    return LogEvent.model_construct(
        seq=line.seq, at=moment_of(line.at), level=line.level, text=line.text, attempt=job.attempt, job_id=job.id
    )


def _progress(job: Job | FinishedJob, progress: Progress) -> ProgressEvent:
    return ProgressEvent.model_construct(
        fraction=progress.fraction,
        note=progress.note,
        at=moment_of(progress.at),
        attempt=job.attempt,
        job_id=job.id,
    )


def _event(name: str, data: BaseModel, place: Place | None = None) -> bytes:
    """JSON has no bare line breaks, so one line of data is enough."""
    number = "" if place is None else f"id: {place}\n"
    return f"event: {name}\n{number}data: {data.model_dump_json()}\n\n".encode()
