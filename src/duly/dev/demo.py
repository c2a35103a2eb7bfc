"""A program to watch when there is none yet: no network, no account, no file."""

import asyncio
import sys

from duly.app.duly import Duly
from duly.bootstrap import JobContext
from duly.domain.cadence import cron, every
from duly.domain.slots import Slot

NAME = "demo"
OWNER = "local"


def demo() -> Duly:
    """A schedule of each kind, one that fails at first, and one that is slower than its own cadence."""
    app = Duly(name=NAME, owner=OWNER)
    pool = app.pool("demo", limit=8)  # so that they run beside each other: in the pool `default` one runs at a time

    @app.job(schedule=every("5s"), schedule_id="demo-interval", pool=pool)
    async def interval(slot: Slot) -> dict[str, str]:
        return {"slot": str(slot)}

    @app.job(schedule=cron("* * * * *"), schedule_id="demo-cron", pool=pool)
    def minutely(slot: Slot) -> dict[str, str]:
        return {"minute": f"{slot.at:%H:%M}"}

    program = [sys.executable, "-c", "print('a program of its own')"]
    app.command("program", program, schedule=every("4s"), schedule_id="demo-program", pool=pool)

    @app.job(schedule=every("15s"), schedule_id="demo-retry", pool=pool, retries=2, backoff="1s")
    def stumbling(context: JobContext) -> str:
        if context.attempt == 1:
            raise RuntimeError("the demo stumbles on purpose")
        return "got up again"

    @app.job(schedule=every("3s"), schedule_id="demo-slow", pool=pool, overlap="skip")
    async def slow() -> None:
        await asyncio.sleep(8)  # noqa: TID251 - as anyone would write it

    return app
