"""How much of a POST is the use case: POST /schedules on SQLite against the same API over one that does nothing.

    python -m bench.http [--seconds 2] [--connections 32]

The rate with the real use case over the rate without is the ratio; the client is a process of its own.
"""

import argparse
import asyncio
import multiprocessing
import os
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


async def _load(port: int, connections: int, seconds: float) -> tuple[int, float]:
    began = time.perf_counter()
    answered = await asyncio.gather(*(_client(port, began + seconds) for _ in range(connections)))
    return sum(answered), time.perf_counter() - began


class Server:
    """One of the two, in a process of its own."""

    def __init__(self, folder: str, *, does_nothing: bool) -> None:
        context = multiprocessing.get_context("spawn")
        address, self._stopping = context.Queue(), context.Event()
        place = str(Path(folder) / f"{does_nothing}.db")
        self._process = context.Process(target=served, args=(place, does_nothing, address, self._stopping))
        self._process.start()
        self._port = int(address.get(timeout=60).rpartition(":")[2])

    def rate(self, connections: int, seconds: float) -> tuple[float, float]:
        """Answers a second, and CPU time of the server for each, which a busy machine does not change as much."""
        before = self._cpu_seconds()
        answered, took = uvloop.run(_load(self._port, connections, seconds))
        return answered / took, (self._cpu_seconds() - before) / answered

    def _cpu_seconds(self) -> float:
        times = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self._stopping.set()
        self._process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        servers = [Server(folder, does_nothing=does_nothing) for does_nothing in (False, True)]
        try:
            compare(servers, arguments)
        finally:
            for server in servers:
                server.stop()


def compare(servers: list[Server], arguments: argparse.Namespace) -> None:
    """In turn and briefly, so that what else the machine does meets both."""
    for server in servers:
        server.rate(arguments.connections, 1.0)
    ratios, shares = [], []
    for number in range(arguments.rounds):
        (real, its_cpu), (nothing, other_cpu) = (
            server.rate(arguments.connections, arguments.seconds) for server in servers
        )
        ratios.append(real / nothing)
        shares.append(other_cpu / its_cpu)
        print(
            f"round {number + 1}: {real:,.0f}/s at {its_cpu * 1e6:,.0f} us of CPU, "
            f"doing nothing {nothing:,.0f}/s at {other_cpu * 1e6:,.0f} us"
        )
    print(f"median ratio of rates {statistics.median(ratios):.2f}, of CPU times {statistics.median(shares):.2f}")


if __name__ == "__main__":
    main()
