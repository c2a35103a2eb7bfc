"""Long lists read a window at a time, so that memory does not grow with them."""

import heapq
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar

from duly.domain.ids import ScheduleId

T = TypeVar("T")


class Windows(Generic[T]):
    """What belongs to each schedule in turn; schedules are asked for in order of their ids."""

    def __init__(self, next_window: Callable[[T | None], Awaitable[list[T]]], owner: Callable[[T], ScheduleId]) -> None:
        self._next_window = next_window
        self._owner = owner
        self._items: deque[T] = deque()
        self._last: T | None = None
        self._is_at_end = False

    async def of(self, schedule_id: ScheduleId) -> AsyncIterator[T]:
        while (item := await self._head()) is not None and self._owner(item) <= schedule_id:
            self._items.popleft()
            if self._owner(item) == schedule_id:
                yield item

    async def _head(self) -> T | None:
        if not self._items and not self._is_at_end:
            self._items.extend(await self._next_window(self._last))
            self._is_at_end = not self._items
            self._last = self._items[-1] if self._items else None
        return self._items[0] if self._items else None


async def merged(*streams: AsyncIterator[T], key: Callable[[T], Any]) -> AsyncIterator[T]:
    """All of them in order, of streams that are each in order."""
    heads: list[tuple[Any, int, T]] = []
    for number, stream in enumerate(streams):
        if (first := await anext(stream, None)) is not None:
            heads.append((key(first), number, first))
    heapq.heapify(heads)
    while heads:
        _, number, item = heads[0]
        yield item
        following = await anext(streams[number], None)
        if following is None:
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, (key(following), number, following))
