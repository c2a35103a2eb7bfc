"""A process that keeps time and, where it is given pools, works, too: what its handler does is in the journal.

With `--crash-at` it ends itself at a named point; with `--statements` it notes which points there are.
"""

import argparse
import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

from duly.bootstrap import Queue
from duly.domain.ids import PoolName
from duly.domain.instants import Micros
from duly.settings import settings_from
from duly.timekeeper import heart, timekeeper
from tests.acceptance import crash_points
from tests.acceptance.crash_points import CrashPoint, Watch
from tests.acceptance.journal import Journal
from tests.acceptance.worker_process import end_with_parent, handle, pools_of, session_name


async def run(journal: Journal, pools: dict[PoolName, int]) -> None:
    asked_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked_to_stop.set)
    queue = await Queue.open(settings_from(os.environ))
    keeper = queue.timekeeper()
    worker = queue.worker(
        handlers={"work": lambda job: handle(journal, job)}, pools=pools, name=session_name(os.getpid())
    )

    async def stop() -> None:
        await asked_to_stop.wait()
        journal.note("stopping")
        keeper.stop()
        worker.stop()

    stopping = asyncio.create_task(stop())
    try:
        journal.note("ready")
        await asyncio.gather(keeper.run(), *([worker.run()] if pools else []))
    finally:
        stopping.cancel()
        await queue.close()


def main() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--fsync", action="store_true")
    parser.add_argument("--pool", action="append", default=[], help="name=executors")
    parser.add_argument("--crash-at", type=CrashPoint.read, help="statement:moment:nth")
    parser.add_argument("--beat-ms", type=int, help="instead of the 5 seconds that are no setting")
    parser.add_argument("--statements", type=Path, help="where to note the names of statements")
    given = parser.parse_args()
    if given.beat_ms:
        for module in (heart, timekeeper):
            vars(module)["BEAT"] = Micros(given.beat_ms * 1_000)
    if given.statements:
        noted = given.statements.open("a", buffering=1)
        crash_points.install(Watch(given.crash_at, lambda statement: print(statement, file=noted)))
    asyncio.run(run(Journal(given.journal, fsync=given.fsync), pools_of(given.pool)))


if __name__ == "__main__":
    main()
    sys.exit(0)
