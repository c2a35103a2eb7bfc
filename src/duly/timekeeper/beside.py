"""What runs for as long as time is kept, and by itself: nothing that it does holds a slot up."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol


class Companion(Protocol):
    async def run(self) -> None: ...

    def stop(self) -> None: ...


@asynccontextmanager
async def accompanied_by(companions: Sequence[Companion]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each.run()) for each in companions]
    try:
        yield
    finally:
        for each in companions:
            each.stop()
        await asyncio.gather(*tasks, return_exceptions=True)
