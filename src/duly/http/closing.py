"""How streams learn that the server stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Closing:
    """Each stream has an event of its own loop; `begin` sets them all, and those of later comers."""

    def __init__(self) -> None:
        self._streams: set[asyncio.Event] = set()
        self._has_begun = False

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._streams)

    def begin(self) -> None:
        self._has_begun = True
        for stream in self._streams:
            stream.set()

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[asyncio.Event]:
        is_closing = asyncio.Event()
        if self._has_begun:
            is_closing.set()
        self._streams.add(is_closing)
        try:
            yield is_closing
        finally:
            self._streams.discard(is_closing)
