"""A worker as a process of its own, whose handler notes in a journal what it does: the journal decides what ran."""

import argparse
import asyncio
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from duly.bootstrap import Queue
from duly.domain.ids import PoolName
from duly.domain.instants import Micros
from duly.domain.sessions import ClaimedJob
from duly.settings import settings_from
from duly.worker.worker import GRACE
from tests.acceptance.bad_handlers import HANDLERS
from tests.acceptance.journal import Journal
from tests.acceptance.relay_handlers import relay


def session_name(pid: int) -> str:
    return f"acceptance {pid}"


async def run(journal: Journal, pools: dict[PoolName, int], grace: Micros) -> None:
    asked_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked_to_stop.set)
    queue = await Queue.open(settings_from(os.environ))
    worker = queue.worker(
        handlers={"work": lambda job: handle(journal, job), "relay": lambda job: relay(journal, job), **HANDLERS},
        pools=pools,
        name=session_name(os.getpid()),
        grace=grace,
    )

    async def stop() -> None:
        await asked_to_stop.wait()
        journal.note("stopping")
        worker.stop()

    stopping = asyncio.create_task(stop())
    try:
        journal.note("ready")
        await worker.run()
    finally:
        stopping.cancel()
        await queue.close()


def handle(journal: Journal, job: ClaimedJob) -> object:
    """`block_ms` holds the event loop, as a careless handler would; `work_ms` leaves it to others.

    Where `work_ms` lists several times, the second of the slot chooses among them.
    """
    params = json.loads(job.payload)
    n, work_ms = params.get("n", -1), params.get("work_ms")
    _note(journal, "enter", job, n)
    time.sleep(params.get("block_ms", 0) / 1000)
    if isinstance(work_ms, list):
        work_ms = work_ms[_second_of(job) % len(work_ms)]
    if work_ms:
        return _work(journal, job, n, work_ms)
    _note(journal, "leave", job, n)
    return None


async def _work(journal: Journal, job: ClaimedJob, n: int, work_ms: int) -> None:
    try:
        await asyncio.sleep(work_ms / 1000)
    except asyncio.CancelledError:
        _note(journal, "cancelled", job, n)
        raise
    _note(journal, "leave", job, n)


def _second_of(job: ClaimedJob) -> int:
    """A slot's job has a key that ends in its instant, such as …:12:59Z."""
    return int((job.key or "0Z")[-3:-1])


def _note(journal: Journal, event: str, job: ClaimedJob, n: int) -> None:
    journal.note(
        event,
        job=job.id,
        chain=job.chain,
        n=n,
        attempt=job.attempt,
        pool=job.pool,
        lane=job.lane,
        token=job.token,
        key=job.key,
        run=job.ledger_run,
    )


def pools_of(given: list[str]) -> dict[PoolName, int]:
    return {PoolName(name): int(count) for name, count in (pool.split("=") for pool in given)}


def end_with_parent() -> None:
    """A test that was itself killed leaves no worker behind: its end of our standard input closes with it."""
    os.read(0, 1)
    os._exit(1)


def main() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--fsync", action="store_true")
    parser.add_argument("--pool", action="append", default=[], help="name=executors")
    parser.add_argument("--grace-ms", type=int, default=GRACE // 1000)
    given = parser.parse_args()
    asyncio.run(run(Journal(given.journal, fsync=given.fsync), pools_of(given.pool), Micros(given.grace_ms * 1000)))


if __name__ == "__main__":
    main()
    sys.exit(0)
