"""Sleeps until a slot fires, opens it, and sleeps again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from duly.application.openings import Opened
from duly.application.timekeeping import OpeningFailed, Timekeeping
from duly.domain.errors import Unavailable
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.ports.ledger import Agenda
from duly.ports.storage import Storage
from duly.ports.telemetry import Telemetry
from duly.timekeeper.beside import Companion, accompanied_by
from duly.timekeeper.heart import BEAT, Aside, Heart

_SHORTEST_BACKOFF = Micros(SECOND // 5)
_LONGEST_BACKOFF = Micros(2 * SECOND)
# When what is due is in another timekeeper's hands.
_LOOK_AGAIN = Micros(SECOND // 20)
# Of openings in one turn: some ten seconds' work.
_MOST_BATCHES = 100
_LONGEST_WAIT = Micros(30 * SECOND)
_LAPSE_EVERY = Micros(60 * SECOND)
_EXPIRE_EVERY = Micros(5 * SECOND)
_EVERYTHING_NOW = Agenda(Instant(0), Instant(0), Instant(0))


class Timekeeper:
    """Any number of them may keep time on one store, each in a process of its own: they share what is due.

    `aside` is where the heart beats; without one it beats in this event loop. `lapse` gives up holds whose holders are
    gone, and answers whether there may be more; `expire` acts on reviews that nobody decided in time, likewise.
    What is `beside` it runs as long as it does.
    """

    def __init__(
        self,
        keeping: Timekeeping,
        *,
        telemetry: Telemetry,
        aside: Callable[[], Aside] | None = None,
        lapse: Callable[[], Awaitable[bool]] | None = None,
        expire: Callable[[], Awaitable[bool]] | None = None,
        beside: Sequence[Companion] = (),
    ) -> None:
        self._keeping = keeping
        self._storage = keeping.storage
        self._clock = keeping.storage.clock
        self._telemetry = telemetry
        self._new_aside = aside or (lambda: _InThisLoop(keeping.storage))
        self._lapse_due = lapse
        self._expire_due = expire
        self._beside = beside
        self._rests: dict[str, _Rest] = {}
        self._agree_at = 0
        self._nudge = asyncio.Event()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Opens nothing new; then `run` returns."""
        self._stopping.set()
        self._nudge.set()

    async def run(self) -> None:
        listener = self._storage.wakeups.listen()
        listening = asyncio.create_task(self._listen(listener.wait))
        try:
            async with self._heart(), accompanied_by(self._beside):
                await self._keep_time()
            await self._beat_last()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            listener.close()

    async def _listen(self, wait: Callable[[Micros], Awaitable[frozenset[str]]]) -> None:
        while True:
            if await wait(_LONGEST_WAIT) & {"schedules", "*"}:
                self._nudge.set()

    @asynccontextmanager
    async def _heart(self) -> AsyncIterator[None]:
        """Beats until this ends, even if it ends while it begins: a heart that outlives its timekeeper tells a lie.

        Where no store is to be had yet, it is asked for again.
        """
        aside = self._new_aside()
        backoff = _Backoff()
        try:
            while not self._stopping.is_set():
                try:
                    await aside.start(self._beat)
                    break
                except Exception as error:  # noqa: BLE001 - a timekeeper never gives up
                    self._telemetry.failed("start the heart", error)
                    await _wait_for(self._stopping, backoff.next())
                    aside = self._new_aside()
            yield
        finally:
            await aside.stop()

    def _beat(self, storage: Storage) -> Awaitable[None]:
        return Heart(replace(self._keeping, storage=storage)).run()

    async def _beat_last(self) -> None:
        """So that coverage ends where this did, not up to a beat before."""
        with suppress(Exception):  # then it is as if it had been killed
            await self._keeping.keep_alive()

    async def _keep_time(self) -> None:
        agenda = _EVERYTHING_NOW
        backoff = _Backoff()
        while not self._stopping.is_set():
            self._nudge.clear()
            try:
                was_idle_at = await self._turn(agenda)
                await self._agree()
                agenda = await self._keeping.agenda()
            except Exception as error:  # noqa: BLE001 - a timekeeper never gives up
                self._telemetry.failed("keep time", error)
                await _wait_for(self._stopping, backoff.next())
                continue
            backoff = _Backoff()
            await self._rest(agenda, was_idle_at)

    async def _agree(self) -> None:
        """The heart has a clock of its own; this one is compared as often."""
        if _awake() >= self._agree_at:
            await self._clock.agree()
            self._agree_at = _awake() + BEAT

    async def tick(self) -> None:
        """One turn, as if everything could be due and nothing had to rest."""
        self._rests.clear()
        await self._turn(_EVERYTHING_NOW)

    async def _turn(self, agenda: Agenda) -> Instant | None:
        """Does what is due by the agenda; answers at which instant nothing was found to do, if so."""
        now = self._clock.now()
        done = [
            await self._try("open", agenda.fire_at, now, self._open),
            await self._try("catch up", agenda.arrears_at, now, self._catch_up),
            await self._try("revoke", agenda.revoke_at, now, self._revoke),
            await self._try("lapse", now, now, self._lapse),
            await self._try("expire", now, now, self._expire),
        ]
        return None if any(done) else now

    async def _try(self, chore: str, at: Instant | None, now: Instant, do: Callable[[], Awaitable[bool]]) -> bool:
        """One that fails rests for a while, so that it does not keep the others from being done."""
        if at is None or at > now or self._rest_left(chore):
            return False
        try:
            return await do()
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - a timekeeper never gives up
            self._telemetry.failed(chore, error)
            self._let_rest(chore, BEAT)
            return False

    async def _open(self) -> bool:
        """Until nothing is due, or so much was that the other chores must have their turn."""
        found = False
        for _ in range(_MOST_BATCHES):
            if self._stopping.is_set():
                break
            try:
                opened = await self._keeping.open_due()
            except OpeningFailed as failed:
                await self._open_each(failed)
                continue
            self._tell(opened)
            found = found or opened.schedules > 0
            if not opened.more:
                break
        return found

    async def _open_each(self, batch: OpeningFailed) -> None:
        """One by one, to find whose slots cannot be written. If nobody's can, it is nobody's fault.

        Nor is it if not even what is due could be read: to ask again at once would never end.
        """
        self._telemetry.failed("open", batch)
        written = False
        failed: dict[ScheduleId, Exception] = {}
        for schedule_id in batch.schedules:
            try:
                opened = await self._keeping.open_one(schedule_id)
                self._tell(opened)
                written |= opened.schedules > 0
            except OpeningFailed as alone:
                failed[schedule_id] = alone.cause
        if not batch.schedules or (failed and not written):
            raise batch
        for schedule_id, cause in failed.items():
            self._tell(await self._keeping.break_down(schedule_id, cause))

    def _tell(self, opened: Opened) -> None:
        self._telemetry.decided(opened.decisions, due=opened.schedules)

    async def _catch_up(self) -> bool:
        """Once in a tick."""
        caught_up = await self._keeping.catch_up()
        self._let_rest("catch up", self._keeping.pace.tick)
        self._telemetry.decided(caught_up.decisions)
        return caught_up.schedules > 0

    async def _revoke(self) -> bool:
        return await self._keeping.revoke_due() > 0

    async def _lapse(self) -> bool:
        """Once a minute: money that is held for nobody is late, and not lost."""
        is_more = self._lapse_due is not None and await self._lapse_due()
        if not is_more:
            self._let_rest("lapse", _LAPSE_EVERY)
        return is_more

    async def _expire(self) -> bool:
        """Every few seconds: a deadline is kept to about as much."""
        is_more = self._expire_due is not None and await self._expire_due()
        if not is_more:
            self._let_rest("expire", _EXPIRE_EVERY)
        return is_more

    async def _rest(self, agenda: Agenda, was_idle_at: Instant | None) -> None:
        """Until something is due or has changed. The clock, which may be set, is read again with every tick."""
        due_at = self._due_at(agenda)
        if was_idle_at is not None and due_at is not None and due_at <= was_idle_at:
            await _wait_for(self._stopping, _LOOK_AGAIN)
            return
        ask_at = _awake() + BEAT
        while not self._nudge.is_set():
            wait = min(self._keeping.pace.tick, ask_at - _awake())
            if due_at is not None:
                wait = min(wait, due_at - self._clock.now())
            if wait <= 0:
                return
            await _wait_for(self._nudge, Micros(wait))

    def _due_at(self, agenda: Agenda) -> int | None:
        """The earliest instant of the agenda, of chores that rest not before they have rested."""
        now = self._clock.now()
        chores = {"open": agenda.fire_at, "catch up": agenda.arrears_at, "revoke": agenda.revoke_at}
        return min(
            (
                max(at, now + left) if (left := self._rest_left(chore)) else at
                for chore, at in chores.items()
                if at is not None
            ),
            default=None,
        )

    def _let_rest(self, chore: str, duration: Micros) -> None:
        self._rests[chore] = _Rest(self._clock.lease_now() + duration, _awake() + duration)

    def _rest_left(self, chore: str) -> int:
        rest = self._rests.get(chore, _NO_REST)
        return max(min(rest.until - self._clock.lease_now(), rest.awake_until - _awake()), 0)


@dataclass(frozen=True, slots=True)
class _Rest:
    """Over when either clock says so."""

    until: int
    awake_until: int


_NO_REST = _Rest(0, 0)


class _Backoff:
    def __init__(self) -> None:
        self._wait = _SHORTEST_BACKOFF

    def next(self) -> Micros:
        wait, self._wait = self._wait, Micros(min(2 * self._wait, _LONGEST_BACKOFF))
        return wait


class _InThisLoop:
    """For tests and simulations, and for a database in memory, which has but one connection."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._task: asyncio.Future[None] | None = None

    async def start(self, task: Callable[[Storage], Awaitable[None]]) -> None:
        self._task = asyncio.ensure_future(task(self._storage))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _awake() -> int:
    """For pauses of its own. Time for leases may stand still: a server's clock that was set back holds it up."""
    return int(asyncio.get_running_loop().time() * SECOND)


async def _wait_for(event: asyncio.Event, at_most: Micros) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(at_most / SECOND):
            await event.wait()
