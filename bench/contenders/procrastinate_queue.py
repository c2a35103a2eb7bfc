"""procrastinate on psycopg 3."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import procrastinate

from bench.contender import Contender, Duty, Pace, enqueue_async, fill_async, ping_async
from bench.tally import Tally

T = TypeVar("T")


class ProcrastinateQueue(Contender):
    packages = ("procrastinate", "psycopg")
    settings = "concurrency 10 with as many connections, LISTEN/NOTIFY on, finished jobs kept (its default)"
    unfinished = "SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status <> 'succeeded')"

    def set_up(self, place: str) -> None:
        async def install(app: procrastinate.App, _task: Any) -> None:
            await app.schema_manager.apply_schema_async()

        _with_app(place, 1, None, install)

    def enqueue(self, place: str, callers: int, seconds: float) -> Pace:
        return _with_app(
            place, callers, None, lambda _, task: enqueue_async(lambda n: task.defer_async(n=n), callers, seconds)
        )

    def fill(self, place: str, jobs: int) -> Pace:
        async def fill(_app: procrastinate.App, task: Any) -> Pace:
            return await fill_async(lambda numbers: task.batch_defer_async(*({"n": n} for n in numbers)), jobs)

        return _with_app(place, 1, None, fill)

    def work(self, place: str, duty: Duty) -> None:
        async def run(app: procrastinate.App, _task: Any) -> None:
            await app.run_worker_async(concurrency=10, install_signal_handlers=False)

        _with_app(place, 12, duty, run)

    def ping(self, place: str, tally: Tally, count: int) -> None:
        _with_app(place, 1, None, lambda _, task: ping_async(lambda n: task.defer_async(n=n), tally, count))


def _with_app(
    place: str, connections: int, duty: Duty | None, use: Callable[[procrastinate.App, Any], Awaitable[T]]
) -> T:
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    connector = procrastinate.PsycopgConnector(conninfo=place, min_size=connections, max_size=connections)
    app = procrastinate.App(connector=connector)

    @app.task(name="noop")
    async def noop(n: int) -> None:
        if duty is not None:
            duty.enter(n)

    async def main() -> T:
        async with app.open_async():
            return await use(app, noop)

    return asyncio.run(main())
