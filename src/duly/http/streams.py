"""How many streams each token has open at this server, and no more than it may."""

from collections import Counter
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from duly.domain.tokens import Caller, TooManyStreams

MOST_STREAMS = 32


class Streams:
    """Each costs the store a look a second, for as long as its run lasts: who forgets to close them is told so."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def enter(self, caller: Caller) -> Callable[[], None]:
        """Takes a place; answers what gives it back. Callers on this machine without a token share one share."""
        whose = caller.token_id or ""
        if self._open[whose] >= self._most:
            raise TooManyStreams(self._most)
        self._open[whose] += 1

        def leave() -> None:
            self._open[whose] -= 1
            if not self._open[whose]:
                del self._open[whose]

        return leave


class EventStream(StreamingResponse):
    """Gives its place back however it ends, even if its first event was never asked for."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], leave: Callable[[], None]) -> None:
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()
