"""Callers of the HTTP API while many schedules fire every second: what they are answered, and how late slots are.

    python -m bench.load [--store sqlite|postgres] [--clients 50] [--schedules 1000] [--seconds 20]

The API, the timekeeper, the worker and the callers are processes of their own. Slots that were not opened in time show
as drift, callers that were let down as an answer of 500 or more.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from duly.bootstrap import Queue, Settings, reading, serve
from duly.domain.cadence import every
from duly.domain.ids import PoolName, RunId
from duly.domain.policies import Overlap, Policies
from duly.domain.pools import Pool
from duly.domain.runs import Run
from duly.domain.schedules import Target
from duly.ports.runs import RunsAsked
from duly.ports.storage import ReadOnlyStorage, Transaction
from tests.postgres_server import fresh_database, running_postgres

POOL = PoolName("wide")
_PAGE = 1_000
_TO_SETTLE_SECONDS = 5


async def plan(queue: Queue, schedules: int) -> None:
    await queue.pools.define(Pool(name=POOL, slots=10_000, prefetch=500))
    for number in range(schedules):
        await queue.schedules.create(
            owner="load",
            schedule_id=f"load-{number}",
            cadence=every("1s"),
            target=Target(kind="noop", pool=POOL),
            policies=Policies(overlap=Overlap.ALLOW),
        )


async def keep(queue: Queue, _: argparse.Namespace) -> None:
    await queue.timekeeper().run()


async def work(queue: Queue, _: argparse.Namespace) -> None:
    await queue.worker(handlers={"noop": lambda _: None}, pools={POOL: 500}, name="load").run()


async def answer(queue: Queue, _: argparse.Namespace) -> None:
    def ready(address: str) -> None:
        print(address, flush=True)

    await serve(queue, host="127.0.0.1", port=0, stop=asyncio.Event(), on_ready=ready)


async def call(address: str, clients: int, seconds: float) -> dict[str, Any]:
    """Each caller makes a schedule, looks at it, changes it, runs it and deletes it, over and over."""
    until = time.monotonic() + seconds
    statuses: Counter[int] = Counter()
    took: list[float] = []
    async with httpx2.AsyncClient(base_url=f"{address}/api/v1", timeout=60) as client:

        async def ask(method: str, path: str, **given: Any) -> Any:
            began = time.monotonic()
            answered = await client.request(method, path, **given)
            took.append(time.monotonic() - began)
            statuses[answered.status_code] += 1
            return answered.json() if answered.content else None

        async def caller(number: int) -> None:
            dice = random.Random(number)
            while time.monotonic() < until:
                body = {"target": "noop", "pool": POOL, "every": "1h", "input": {"caller": number}}
                made = await ask("POST", "/schedules", json=body, headers={"Idempotency-Key": f"{dice.random()}"})
                one = f"/schedules/{made['id']}"
                await ask("GET", one)
                await ask("PATCH", one, json={"every": "2h"})
                await ask("POST", f"{one}/trigger")
                await ask("GET", f"{one}/runs")
                await ask("GET", f"/schedules/load-{dice.randrange(100)}/why")
                await ask("GET", "/runs?limit=50")
                await ask("DELETE", one)

        await asyncio.gather(*map(caller, range(clients)))
    took.sort()
    return {"statuses": dict(statuses), "calls": len(took), "p50_ms": _at(took, 0.5), "p99_ms": _at(took, 0.99)}


async def drift(settings: Settings, since: float) -> dict[str, Any]:
    async def look(storage: ReadOnlyStorage) -> list[Run]:
        runs: list[Run] = []
        while not runs or runs[-1].fire_at >= since * 1_000_000:
            before = runs[-1].id if runs else None
            page = await storage.read(partial(_page, before=before))
            runs += page
            if not page:
                break
        return runs

    runs = [run for run in await reading(settings, look) if run.kind == "slot" and run.fire_at >= since * 1_000_000]
    late = sorted((run.opened_at - run.fire_at) / 1_000_000 for run in runs)
    statuses = Counter(run.status.value for run in runs)
    return {"slots": len(late), "p50_ms": _at(late, 0.5), "p99_ms": _at(late, 0.99), "statuses": dict(statuses)}


async def _page(tx: Transaction, *, before: RunId | None) -> list[Run]:
    return await tx.runs.newest(RunsAsked(), before=before, most=_PAGE)


def _at(values: list[float], share: float) -> float:
    return round(1_000 * values[min(int(len(values) * share), len(values) - 1)], 1) if values else 0.0


@contextlib.contextmanager
def process(what: str, place: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "bench.load", "--part", what, "--place", place]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


@contextlib.contextmanager
def fresh(store: str) -> Iterator[str]:
    if store == "postgres":
        with running_postgres() as server, fresh_database(server) as url:
            yield url
    else:
        with tempfile.TemporaryDirectory(prefix="duly-load-") as folder:
            yield str(Path(folder) / "load.db")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    with fresh(options.store) as place:
        settings = Settings(database_url=place)
        asyncio.run(_with(settings, lambda queue: plan(queue, options.schedules)))
        with process("answer", place) as api, process("keep", place), process("work", place):
            assert api.stdout is not None
            address = api.stdout.readline().strip()
            time.sleep(_TO_SETTLE_SECONDS)
            began = time.time()
            called = asyncio.run(call(address, options.clients, options.seconds))
            ended = time.time()
        drifted = asyncio.run(drift(settings, began))
        return {"seconds": round(ended - began, 1), "api": called, "slots": drifted, "load": os.getloadavg()[0]}


async def _with(settings: Settings, use: Any) -> None:
    queue = await Queue.open(settings)
    try:
        await use(queue)
    finally:
        await queue.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--part", choices=("keep", "work", "answer"), help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        part = {"keep": keep, "work": work, "answer": answer}[options.part]
        asyncio.run(_with(Settings(database_url=options.place), lambda queue: part(queue, options)))
    else:
        print(json.dumps(measure(options), indent=2))


if __name__ == "__main__":
    main()
