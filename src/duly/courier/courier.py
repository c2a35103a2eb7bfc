"""Sleeps until there is something to tell, tells it, and sleeps again."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from duly.application.deliveries import Deliveries
from duly.domain.instants import SECOND, Micros
from duly.domain.webhooks.deliveries import Errand
from duly.domain.webhooks.endpoints import Endpoint
from duly.ports.telemetry import Telemetry
from duly.ports.webhooks import Sender

_LONGEST_WAIT = Micros(30 * SECOND)
_AT_ONCE = Micros(0)
_AFTER_A_FAILURE = Micros(2 * SECOND)
_LAST_CALLS_S = 5.0
_CHORE = "deliver webhooks"


class Courier:
    """Any number of them may run on one store: each delivery is in the hands of one.

    `sender` is made when there is something to send: who tells nobody loads no HTTP client.
    """

    def __init__(self, deliveries: Deliveries, sender: Callable[[], Sender], *, telemetry: Telemetry) -> None:
        self._deliveries = deliveries
        self._new_sender = sender
        self._sender: Sender | None = None
        self._telemetry = telemetry
        self._going: dict[asyncio.Task[None], Endpoint] = {}
        self._nudge = asyncio.Event()
        self._is_stopping = False
        self._has_looked_again = False

    def stop(self) -> None:
        """Sends nothing new; then `run` returns. A call that does not end soon is made again by another courier."""
        self._is_stopping = True
        self._nudge.set()

    async def run(self) -> None:
        listener = self._deliveries.storage.wakeups.listen()
        listening = asyncio.create_task(self._listen(listener.wait))
        try:
            while not self._is_stopping:
                self._nudge.clear()
                await _wait_for(self._nudge, await self._turn_or_rest())
            if self._going:
                await asyncio.wait(self._going, timeout=_LAST_CALLS_S)
        finally:
            listening.cancel()
            for task in self._going:
                task.cancel()
            await asyncio.gather(listening, *self._going, return_exceptions=True)
            listener.close()

    async def _listen(self, wait: Callable[[Micros], Awaitable[frozenset[str]]]) -> None:
        while True:
            if await wait(_LONGEST_WAIT) & {"webhooks", "*"}:
                self._nudge.set()

    async def _turn_or_rest(self) -> Micros:
        try:
            return await self.turn()
        except Exception as error:  # noqa: BLE001 - a courier never gives up
            self._telemetry.failed(_CHORE, error)
            return _AFTER_A_FAILURE

    async def turn(self) -> Micros:
        """Starts what is due; answers how long nothing will be, unless something happens."""
        deliveries = self._deliveries
        has_work, at = await deliveries.next_at()
        if not has_work:
            return _LONGEST_WAIT
        if not self._has_looked_again:
            await deliveries.look_again()
            self._has_looked_again = True
            _, at = await deliveries.next_at()
        if at is None or at > deliveries.storage.clock.now():
            return deliveries.pace.look_every
        is_more = await deliveries.fan_out()
        free = deliveries.pace.most_at_once - len(self._going)
        errands = await deliveries.claim(free, under_way=[*self._going.values()]) if free > 0 else []
        for errand in errands:
            task = asyncio.create_task(self._deliver(errand))
            self._going[task] = errand.endpoint
            task.add_done_callback(self._done)
        return _AT_ONCE if is_more or errands else deliveries.pace.look_every

    async def settled(self) -> None:
        """Until every call that is under way has ended."""
        while self._going:
            await asyncio.wait(set(self._going))

    async def _deliver(self, errand: Errand) -> None:
        if self._sender is None:
            self._sender = self._new_sender()
        try:
            await self._deliveries.report(errand, await self._sender.send(errand))
        except Exception as error:  # noqa: BLE001 - the lease lets another try follow
            self._telemetry.failed(_CHORE, error)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._going.pop(task, None)
        self._nudge.set()


async def _wait_for(event: asyncio.Event, at_most: Micros) -> None:
    if at_most <= 0:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(at_most / SECOND):
            await event.wait()
