"""How much of a POST is the use case: POST /schedules on SQLite against the same API over one that does nothing.

    python -m bench.http [--seconds 5] [--connections 32]

The rate with the real use case over the rate without is the ratio; the client is a process of its own.
"""

import argparse
import asyncio
import multiprocessing
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop

from duly.bootstrap import Queue, Settings, serve
from duly.domain.cadence import cron
from duly.domain.instants import Instant
from duly.domain.policies import Policies
from duly.domain.schedules import Schedule, Target, new_schedule

BODY = b'{"target":"greet","cron":"0 9 * * *","timezone":"Europe/Berlin","input":{"topic":"news"}}'
REQUEST = (
    b"POST /api/v1/schedules HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


class Nothing:
    """Answers a schedule that nobody keeps."""

    defaults = Policies()

    def __init__(self) -> None:
        self._made = new_schedule(
            schedule_id="sch_0",
            owner="local",
            cadence=cron("0 9 * * *", "Europe/Berlin"),
            target=Target(kind="greet", params={"topic": "news"}),
            policies=self.defaults,
            now=Instant(1_800_000_000_000_000),
        )

    async def create(self, **_: Any) -> Schedule:
        return self._made


async def _serve(queue: Queue, address: Any, stopping: Any) -> None:
    stop = asyncio.Event()
    waiting = asyncio.get_running_loop().run_in_executor(None, stopping.wait)
    waiting.add_done_callback(lambda _: stop.set())
    await serve(queue, host="127.0.0.1", port=0, stop=stop, on_ready=address.put)


def served(place: str, does_nothing: bool, address: Any, stopping: Any) -> None:
    async def main() -> None:
        queue = await Queue.open(Settings(database_url=place))
        try:
            shown = replace(queue, schedules=Nothing()) if does_nothing else queue  # type: ignore[arg-type]
            await _serve(shown, address, stopping)
        finally:
            await queue.close()

    uvloop.run(main())


async def _client(port: int, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answered = 0
    while time.perf_counter() < until:
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 201"):
            raise RuntimeError(head.decode())
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        answered += 1
    writer.close()
    return answered


async def _load(port: int, connections: int, seconds: float) -> float:
    began = time.perf_counter()
    answered = await asyncio.gather(*(_client(port, began + seconds) for _ in range(connections)))
    return sum(answered) / (time.perf_counter() - began)


def rate(does_nothing: bool, connections: int, seconds: float) -> float:
    context = multiprocessing.get_context("spawn")
    address, stopping = context.Queue(), context.Event()
    with tempfile.TemporaryDirectory() as folder:
        server = context.Process(target=served, args=(str(Path(folder) / "duly.db"), does_nothing, address, stopping))
        server.start()
        port = int(address.get(timeout=30).rpartition(":")[2])
        try:
            uvloop.run(_load(port, connections, 1.0))
            return float(uvloop.run(_load(port, connections, seconds)))
        finally:
            stopping.set()
            server.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    ratios = []
    for number in range(arguments.rounds):
        real = rate(False, arguments.connections, arguments.seconds)
        nothing = rate(True, arguments.connections, arguments.seconds)
        ratios.append(real / nothing)
        print(f"round {number + 1}: {real:,.0f}/s, doing nothing {nothing:,.0f}/s, ratio {real / nothing:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
