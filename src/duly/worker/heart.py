"""Keeps a session alive, tells its worker what it must know, and takes over from sessions that died."""

import asyncio
from collections.abc import Callable, Sequence

from duly.application.sessions import Sessions
from duly.application.tickets import Tickets
from duly.domain.instants import SECOND, Micros
from duly.domain.sessions import Beat, Rescue, Session, SessionLost

_RETRY_AFTER = Micros(SECOND // 2)
_SHORTEST_SLEEP = Micros(SECOND // 5)


def _untold(_: Sequence[Rescue]) -> None:
    pass


class Heart:
    """Beats three times per lease. Once the lease may have run out, the session counts as lost, told or not."""

    def __init__(
        self,
        sessions: Sessions,
        session: Session,
        *,
        on_beat: Callable[[Beat], None],
        on_lost: Callable[[], None],
        on_rescue: Callable[[Sequence[Rescue]], None] = _untold,
    ) -> None:
        self._sessions = sessions
        self._tickets = Tickets(sessions.storage, sessions.dice)
        self._session = session
        self._clock = sessions.storage.clock
        self._on_beat = on_beat
        self._on_lost = on_lost
        self._on_rescue = on_rescue
        self._hurry = asyncio.Event()

    def hurry(self) -> None:
        """Beats now: something happened that a beat's answer tells."""
        self._hurry.set()

    async def run(self) -> None:
        """Until cancelled, or until the session is lost."""
        good_until = self._clock.lease_now() + self._session.lease
        while self._clock.lease_now() < good_until:
            asked_at = self._clock.lease_now()
            self._hurry.clear()
            try:
                async with self._until(good_until):
                    await self._clock.agree()
                    beat = await self._sessions.beat(self._session.id)
                good_until = asked_at + self._session.lease
                self._on_beat(beat)
                async with self._until(good_until):
                    await self._take_over(beat)
                await self._sleep(self._until_next(beat))
            except SessionLost:
                break
            except Exception:  # noqa: BLE001 - whatever it was, a heart that stands still is worse
                await self._sleep(_RETRY_AFTER)
        self._on_lost()

    def _until(self, instant: int) -> asyncio.Timeout:
        """A store that hangs must not hide that the lease has run out."""
        return asyncio.timeout(max(instant - self._clock.lease_now(), 0) / SECOND)

    async def _take_over(self, beat: Beat) -> None:
        if beat.next_expiry is not None and beat.next_expiry <= self._clock.lease_now():
            # A part at a time: one's own lease must not run out over it.
            until = Micros(self._clock.lease_now() + self._session.lease // 3)
            if rescues := await self._sessions.rescue_expired(until=until):
                self._on_rescue(rescues)
        await self._tickets.expire()

    def _until_next(self, beat: Beat) -> Micros:
        """Sooner than the next beat, if another session's lease runs out before it."""
        every = Micros(self._session.lease // 3)
        if beat.next_expiry is None:
            return every
        return Micros(min(every, beat.next_expiry - self._clock.lease_now() + 1))

    async def _sleep(self, duration: Micros) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(Micros(max(duration, _SHORTEST_SLEEP))))
        hurrying = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait({sleeping, hurrying}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            hurrying.cancel()
