"""Direct calls of one process: each waits for a place, enters its handler and answers; no job is put."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from duly.application.directs import DEFAULT_WAIT, Direct, Directs
from duly.application.sessions import Sessions
from duly.domain.errors import Unavailable
from duly.domain.ids import PoolName, TicketId
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import Ending, JobStatus, NewJob, Suspended
from duly.domain.payloads import value_of
from duly.domain.sessions import LEASE, Session, SessionLost
from duly.domain.tickets import Deadline, DirectFailed, DirectStopped, NoHandler, Ticket, TicketState, UnknownTicket
from duly.worker.calls import require_fit
from duly.worker.handlers import Handler, enter
from duly.worker.heart import Heart
from duly.worker.job_runs import JobRun
from duly.worker.pulse import LoopPulse, Pulse

# Hints may be lost: whoever waits looks as often as this.
_LOOK_EVERY = Micros(SECOND)
_RETRY_AFTER = Micros(SECOND // 5)
_NO_GRACE = Micros(0)
_STOPPING = "its process stops"
_LOST = "the session of its process ran out, and its place was given to others"
_WAITS_FOR_PEOPLE = Ending(
    status=JobStatus.FAILED,
    error="it waits for a review, and nobody stays on the line for that: put it as a job",
    retryable=False,
)


@dataclass(slots=True)
class _Life:
    """One session of this process, and the calls under it."""

    session: Session
    pulse: Pulse
    calls: "set[_Call]" = field(default_factory=set)
    is_lost: bool = False


@dataclass(slots=True, eq=False)
class _Call:
    """`gone` is set when nobody waits for its turn any more; `why` says so to its caller."""

    name: str
    direct: Direct
    life: _Life
    wait: Micros
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    why: str | None = None
    turn: "asyncio.Task[bool] | None" = None
    run: JobRun | None = None
    ended: "asyncio.Future[Ending] | None" = None

    def stop(self, why: str) -> None:
        self.why = self.why or why
        self.gone.set()
        if self.run is not None:
            self.run.stop()

    def settle(self, _: JobRun, ending: Ending | Suspended) -> None:
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(_WAITS_FOR_PEOPLE if isinstance(ending, Suspended) else ending)


class DirectCalls:
    """Opened with the first call; all calls of a process share a session. `handlers` are asked for with each call."""

    def __init__(
        self,
        *,
        directs: Directs,
        sessions: Sessions,
        handlers: Callable[[], Mapping[str, Handler]],
        name: str,
        patience: Micros,
        lease: Micros = LEASE,
        pulse: Callable[[], Pulse] | None = None,
    ) -> None:
        self._directs = directs
        self._sessions = sessions
        self._storage = sessions.storage
        self._handlers = handlers
        self._name = name
        self._patience = patience
        self._lease = lease
        self._new_pulse = pulse or (lambda: LoopPulse(sessions))
        self._opening: asyncio.Task[_Life] | None = None
        self._is_stopping = False
        self._aside: set[asyncio.Task[None]] = set()

    async def call(
        self, template: str, params: Mapping[str, Any] | None = None, *, owner: str | None, wait: Micros = DEFAULT_WAIT
    ) -> Any:
        """What the handler answered. `wait` bounds all of it: the wait for a place, and the run."""
        return await self._called(template, await self._directs.from_template(template, params, owner=owner), wait)

    async def call_job(self, new: NewJob, *, wait: Micros = DEFAULT_WAIT) -> Any:
        return await self._called(new.kind, await self._directs.from_job(new), wait)

    async def close(self, *, grace: Micros = _NO_GRACE) -> None:
        """Refuses calls from now on; those that wait end, those that run may do so for as long as the grace lasts."""
        self._is_stopping = True
        if self._opening is None:
            return
        with suppress(Exception):
            life = await asyncio.shield(self._opening)
            await self._wind_up(life, grace)
        if self._aside:
            await asyncio.wait(self._aside)

    async def _called(self, name: str, direct: Direct, wait: Micros) -> Any:
        handler = self._handlers().get(direct.job.kind)
        if handler is None:
            raise NoHandler(direct.job.kind)
        require_fit(handler, direct.job)
        deadline = asyncio.get_running_loop().time() + wait / SECOND
        call = _Call(name, direct, await self._alive_by(deadline, name), wait)
        call.life.calls.add(call)
        try:
            async with asyncio.timeout_at(deadline):
                await self._wait_for_turn(call)
                ending = await self._entered(call)
        except TimeoutError:
            raise Deadline(name, waited=call.ended is None) from None
        finally:
            # In a task of its own: a caller that leaves twice must not leave a place taken.
            await asyncio.shield(self._set_aside(self._leave(call)))
        if call.why is not None and ending.status is not JobStatus.COMPLETED:
            raise DirectStopped(name, why=call.why)
        return _answer_of(ending)

    async def _alive_by(self, deadline: float, name: str) -> _Life:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._alive(name)
        except TimeoutError:
            raise Deadline(name, waited=True) from None

    async def _alive(self, name: str) -> _Life:
        while not self._is_stopping:
            if self._opening is None:
                self._opening = asyncio.create_task(self._begin())
            opening = self._opening
            try:
                life = await asyncio.shield(opening)
            except Exception:
                self._forget(opening)
                raise
            if not life.is_lost:
                return life
        raise DirectStopped(name, why=_STOPPING)

    async def _begin(self) -> _Life:
        session = await self._sessions.open(name=self._name, lease=self._lease)
        life = _Life(session, self._new_pulse())
        loop = asyncio.get_running_loop()

        def lost() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._lose, life)

        await life.pulse.start(lambda sessions: Heart(sessions, session, on_beat=lambda _: None, on_lost=lost))
        return life

    def _lose(self, life: _Life) -> None:
        """Its places are others' by now: whatever still runs is asked to stop, and the next call begins anew."""
        if life.is_lost:
            return
        life.is_lost = True
        if self._opening is not None and self._opening.done() and self._opening.result() is life:
            self._opening = None
        for call in life.calls:
            call.stop(_LOST)
        self._set_aside(life.pulse.stop())

    def _forget(self, opening: "asyncio.Task[_Life]") -> None:
        if self._opening is opening:
            self._opening = None

    async def _wait_for_turn(self, call: _Call) -> None:
        """The turn is waited for aside, and told when nobody wants it: its transactions are never cut short."""
        call.turn = asyncio.create_task(self._take_all(call))
        if not await asyncio.shield(call.turn):
            raise DirectStopped(call.name, why=call.why or _LOST)

    async def _take_all(self, call: _Call) -> bool:
        try:
            for place in call.direct.places:
                if call.gone.is_set() or not await self._take(call, place):
                    return False
        except (UnknownTicket, SessionLost):
            if await self._is_lost(call):
                return False
            raise Deadline(call.name, waited=True) from None
        return not call.gone.is_set()

    async def _is_lost(self, call: _Call) -> bool:
        """A ticket that is gone has expired, unless all of its session's are."""
        try:
            await self._sessions.beat(call.life.session.id)
        except SessionLost:
            self._lose(call.life)
            return True
        return False

    async def _take(self, call: _Call, place: tuple[PoolName, TicketId]) -> bool:
        pool, ticket_id = place
        topics = {"*", "ticket", f"pool:{pool}"}
        listener = self._storage.wakeups.listen()
        try:
            ticket: Ticket = await self._directs.request(place, session=call.life.session.id, wait=call.wait)
            while ticket.state is TicketState.WAITING:
                heard = await _unless(call.gone, listener.wait(_LOOK_EVERY))
                if call.gone.is_set():
                    return False
                if not heard or heard & topics:
                    ticket = await self._directs.tickets.take(ticket_id)
            return True
        finally:
            listener.close()

    async def _entered(self, call: _Call) -> Ending:
        if call.gone.is_set():
            # Told to stop after its turn had come: its place may be another's by now.
            raise DirectStopped(call.name, why=call.why or _LOST)
        job = call.direct.job
        entered = enter(self._handlers(), job)
        if isinstance(entered, Ending):
            return entered
        call.ended = asyncio.get_running_loop().create_future()
        call.run = JobRun(job, entered, patience=self._patience, on_end=call.settle, on_gone=lambda _: None)
        return await asyncio.shield(call.ended)

    async def _leave(self, call: _Call) -> None:
        """Whatever it still does is stopped, then its places are given back."""
        call.gone.set()
        if call.run is not None and call.ended is not None:
            call.run.stop()
            await call.ended
        if call.turn is not None:
            await asyncio.gather(call.turn, return_exceptions=True)
        for _, ticket_id in call.direct.places:
            await self._release(call.life, ticket_id)
        call.life.calls.discard(call)

    async def _release(self, life: _Life, ticket_id: TicketId) -> None:
        """A store that cannot be reached is asked again, for as long as the place is ours to give back."""
        until = self._storage.clock.lease_now() + life.session.lease
        while not life.is_lost and self._storage.clock.lease_now() < until:
            try:
                await self._directs.tickets.release(ticket_id)
            except Unavailable:
                await self._storage.clock.sleep(_RETRY_AFTER)
            else:
                return

    async def _wind_up(self, life: _Life, grace: Micros) -> None:
        for call in [each for each in life.calls if each.run is None]:
            call.stop(_STOPPING)
        running = [call.ended for call in life.calls if call.ended is not None]
        if running:
            await asyncio.wait(running, timeout=grace / SECOND)
        for call in life.calls:
            call.stop(_STOPPING)
        if self._aside:
            await asyncio.wait(self._aside)
        await life.pulse.stop()
        with suppress(Unavailable):  # then its lease runs out
            await self._sessions.close(life.session.id)

    def _set_aside(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        return task


async def _unless(event: asyncio.Event, waiting: Coroutine[Any, Any, frozenset[str]]) -> frozenset[str]:
    """What is heard, or nothing once the event is set."""
    set_ = asyncio.ensure_future(event.wait())
    hearing = asyncio.ensure_future(waiting)
    await asyncio.wait({set_, hearing}, return_when=asyncio.FIRST_COMPLETED)
    heard = hearing.result() if hearing.done() else frozenset[str]()
    for each in (set_, hearing):
        each.cancel()
    await asyncio.gather(set_, hearing, return_exceptions=True)
    return heard


def _answer_of(ending: Ending) -> Any:
    if ending.status is not JobStatus.COMPLETED:
        raise DirectFailed(ending.error or ending.status.value)
    return None if ending.result is None else value_of(ending.result)
