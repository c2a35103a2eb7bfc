"""Tells whoever watches `duly dev` what runs ask, and the command that answers."""

from duly.bootstrap import Queue
from duly.dev.screen import Screen
from duly.domain.errors import Unavailable
from duly.domain.instants import SECOND, Micros
from duly.domain.reviews import ReviewState

_MOST_TOLD = 20
_LONGEST_WAIT = Micros(5 * SECOND)
_PAUSE = Micros(SECOND // 5)
_LONGEST_QUESTION = 80


class Questions:
    """Each is told once, from the first look on: those that were open before, too."""

    def __init__(self, queue: Queue, screen: Screen, command: str) -> None:
        self._queue = queue
        self._screen = screen
        self._command = command
        self._told: set[str] = set()

    async def follow(self) -> None:
        listener = self._queue.storage.wakeups.listen()
        try:
            while True:
                try:
                    await self.look()
                except Unavailable as error:
                    self._screen.failed("look for reviews", error)
                await listener.wait(_LONGEST_WAIT)
                await self._queue.storage.clock.sleep(_PAUSE)
        finally:
            listener.close()

    async def look(self) -> None:
        found = await self._queue.reviews.list(owner=None, state=ReviewState.OPEN, most=_MOST_TOLD)
        for review in reversed(found):
            if review.id not in self._told:
                self._told.add(review.id)
                self._screen.asked(review.graph_id, _shown(review.question), self._answer(review.id))

    def _answer(self, review_id: str) -> str:
        return f"{self._command} review approve {review_id}"


def _shown(question: str) -> str:
    return question if len(question) <= _LONGEST_QUESTION else f"{question[: _LONGEST_QUESTION - 1]}…"
