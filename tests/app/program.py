"""A program as people write it, told to stop by a signal while a job runs."""

import asyncio
import sys
import time
from pathlib import Path

from duly import Duly, JobContext, every

app = Duly(sys.argv[1])
notes = Path(sys.argv[2])


def note(word: str) -> None:
    with notes.open("a") as file:
        file.write(f"{word}\n")


@app.job
async def in_loop() -> str:
    note("in_loop")
    await asyncio.sleep(1)
    return "rested"


@app.job
def in_thread(context: JobContext) -> str:
    note("in_thread")
    time.sleep(1)
    return f"rested, {context.cancelled}"


@app.job(schedule=every("1d"))
async def seldom() -> None: ...


if __name__ == "__main__":
    app.pool("default", limit=2)
    app.run_sync(grace="50s")
    note("ended")
