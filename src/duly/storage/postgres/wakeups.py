"""LISTEN and NOTIFY on a connection of their own, so that no transaction ever waits for a hint.

A NOTIFY inside a transaction holds a lock of the whole server through its commit; here topics are
collected and sent together, at once when it was quiet and every few milliseconds when it is not. A lone
put in a quiet process may take its hint along, while commits are quick (docs/decisions/0014).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import asyncpg

from duly.domain.errors import DulyError
from duly.domain.instants import SECOND, Micros
from duly.storage.postgres.connections import close_quietly
from duly.storage.postgres.errors import DRIVER_ERRORS
from duly.storage.postgres.patience import Backoff
from duly.system.ticks import SystemTicks, Ticks

EVERYTHING = "*"
"""Heard in place of topics that may have been lost."""

_CHANNEL = "duly"
_PAUSE = Micros(10_000)
_QUICK = Micros(5_000)
_SLOW_FOR = Micros(SECOND)
_ANSWER_SECONDS = 5.0
_SENDER = "from:"
_LONGEST_PAYLOAD = 7_999


class PostgresListener:
    __slots__ = ("_close", "_heard", "_stirred")

    def __init__(self, close: Callable[["PostgresListener"], None]) -> None:
        self._close = close
        self._heard: set[str] = set()
        self._stirred = asyncio.Event()

    async def wait(self, at_most: Micros) -> frozenset[str]:
        if not self._heard:
            with suppress(TimeoutError):
                async with asyncio.timeout(at_most / SECOND):
                    await self._stirred.wait()
        heard, self._heard = frozenset(self._heard), set()
        self._stirred.clear()
        return heard

    def hear(self, topics: Iterable[str]) -> None:
        self._heard.update(topics)
        self._stirred.set()

    def close(self) -> None:
        self._close(self)


class PostgresWakeups:
    """Bound to the event loop it was made on."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], *, ticks: Ticks | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._connect = connect
        self._ticks = ticks or SystemTicks()
        self._listeners: set[PostgresListener] = set()
        self._unsent: set[str] = set()
        self._stirred = asyncio.Event()
        self._connection: asyncpg.Connection | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._closed = False
        self._is_quiet = False
        self._carried_at = self._carry_from = Micros(0)

    async def start(self) -> None:
        """Listens from here on; without it the first `announce` or `listen` does so in the background."""
        await self._reconnect()
        self._keep()

    def announce(self, topics: frozenset[str]) -> None:
        # From another thread, or after the loop has ended, nobody may be there to tell: it is a hint.
        if self._on_our_loop():
            self._announce(topics)
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._announce, topics)

    def carry(self, topics: Iterable[str]) -> str | None:
        """The payload for a statement that may tell these topics as it commits; then `carried` follows its answer.

        At most one for each pause, and none for a while after a slow one: every NOTIFY of the server waits for it.
        """
        if not self._is_quiet or self._connection is None or self._ticks.awake() < self._carry_from:
            return None
        self._stir()
        self._carried_at = self._ticks.awake()
        return packed([*topics, f"{_SENDER}{self._connection.get_server_pid()}"])

    def carried(self, topics: frozenset[str]) -> None:
        """Others heard it from the server."""
        self._tell(topics)
        now = self._ticks.awake()
        if now - self._carried_at > _QUICK:
            self._carry_from = Micros(now + _SLOW_FOR)

    def listen(self) -> PostgresListener:
        listener = PostgresListener(self._listeners.discard)
        self._listeners.add(listener)
        if self._connection is None:
            self._stir()
        return listener

    async def close(self) -> None:
        """Sends what was announced, if the server takes it within a second."""
        self._closed = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(TimeoutError, *_LOST):
            async with asyncio.timeout(1):
                await self._send(connection)
        await close_quietly(connection)

    def _on_our_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _announce(self, topics: frozenset[str]) -> None:
        if not topics or self._closed:
            return
        self._tell(topics)
        self._unsent |= topics
        self._stir()

    def _stir(self) -> None:
        self._is_quiet = False
        self._keep()
        self._stirred.set()

    def _keep(self) -> None:
        if self._keeper is None and not self._closed:
            self._keeper = self._loop.create_task(self._keep_going(), name="duly-wakeups")

    async def _keep_going(self) -> None:
        backoff = Backoff()
        while True:
            self._is_quiet = True
            await self._stirred.wait()
            self._stirred.clear()
            try:
                connection = self._connection or await self._reconnect()
                await self._send(connection)
            except Exception:  # noqa: BLE001 - whatever it was, hints must go on
                self._hang_up()
                await self._ticks.sleep(backoff.next())
                self._stirred.set()
            else:
                backoff = Backoff()
                await self._ticks.sleep(_PAUSE)

    async def _reconnect(self) -> asyncpg.Connection:
        connection = await self._connect()
        try:
            await connection.add_listener(_CHANNEL, self._heard)
        except BaseException:
            connection.terminate()
            raise
        connection.add_termination_listener(self._lost)
        self._connection = connection
        # While nobody listened for us, anything may have been announced.
        self._tell({EVERYTHING})
        return connection

    async def _send(self, connection: asyncpg.Connection) -> None:
        if not self._unsent:
            return
        topics, self._unsent = self._unsent, set()
        try:
            await connection.fetchval("SELECT pg_notify($1, $2)", _CHANNEL, packed(topics), timeout=_ANSWER_SECONDS)
        except BaseException:
            self._unsent |= topics
            raise

    def _heard(self, connection: asyncpg.Connection, sender: int, _channel: str, payload: str) -> None:
        # All we announce goes through this one connection, or bears its number, and listeners here were told directly.
        ours = connection.get_server_pid()
        if sender == ours:
            return
        topics = unpacked(payload)
        if f"{_SENDER}{ours}" not in topics:
            self._tell(topic for topic in topics if not topic.startswith(_SENDER))

    def _lost(self, connection: asyncpg.Connection) -> None:
        if connection is self._connection:
            self._connection = None
            self._stirred.set()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    def _tell(self, topics: Iterable[str]) -> None:
        topics = frozenset(topics)
        for listener in self._listeners:
            listener.hear(topics)


_LOST = (*DRIVER_ERRORS, DulyError)


def packed(topics: Iterable[str]) -> str:
    """One payload for all topics; when they are too many for the server, it says `everything` instead."""
    payload = json.dumps(sorted(topics), separators=(",", ":"))
    return payload if len(payload) <= _LONGEST_PAYLOAD else json.dumps([EVERYTHING])


def unpacked(payload: str) -> frozenset[str]:
    """The topics of a payload; whatever is not ours wakes everyone, since a hint too many costs one look."""
    try:
        topics = json.loads(payload)
    except ValueError:
        return frozenset({EVERYTHING})
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        return frozenset({EVERYTHING})
    return frozenset(topics)
