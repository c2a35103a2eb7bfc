"""What it costs to keep time while nothing is due, with a thousand schedules and with a million."""

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.arena import Arena, asking, command, run
from bench.seeds import copy_schedule
from bench.tally import Tally

TITLE = "idle"
HEADER = """
| idle, nothing due | schedules | from start to first sign of life | CPU, share of a core | memory |
|---|---|---|---|---|"""

_NAME = "duly-timekeeper"
_COUNTS = (1_000, 100_000, 1_000_000)
_IN_A_DAY = 86_400
_TO_SETTLE_SECONDS = 5
_IS_ALIVE = "SELECT EXISTS (SELECT 1 FROM coverage WHERE alive_at >= {})"


def measure(arena: Arena, store: str, seconds: float) -> list[dict[str, Any]]:
    """`seconds` is how long each is watched."""
    measured = []
    for count in _COUNTS:
        figures = {"store": store, "schedules": count} | _watch(arena, store, count, seconds)
        print(_line(figures), flush=True)
        measured.append(figures)
    return measured


def _watch(arena: Arena, store: str, count: int, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="duly-bench-") as folder, arena.place(store, Path(folder)) as place:
        run(_NAME, "plan", place=place, due_at=[(int(time.time()) + _IN_A_DAY, 1)])
        copy_schedule(place, "s-0", count - 1, apart_s=1)
        Tally.create(Path(folder) / "tally")
        with asking(place) as ask, _keeping_time(place, Path(folder) / "tally") as process:
            started = time.time()
            while not ask(_IS_ALIVE.format(int(started * 1_000_000))):
                time.sleep(0.005)
            start_seconds = time.time() - started
            time.sleep(_TO_SETTLE_SECONDS)
            before = _cpu_seconds(process.pid)
            time.sleep(seconds)
            cpu_share = (_cpu_seconds(process.pid) - before) / seconds
            return {"start_seconds": start_seconds, "cpu_share": cpu_share, "memory_mib": _memory_mib(process.pid)}


@contextlib.contextmanager
def _keeping_time(place: str, tally: Path) -> Iterator[subprocess.Popen[bytes]]:
    root = Path(__file__).parent.parent
    process = subprocess.Popen(command(_NAME, "keep", {"place": place, "tally": str(tally)}), cwd=root)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _cpu_seconds(pid: int) -> float:
    """Of all its threads, by the scheduler's own count: the kernel's ticks of 10 ms would be too coarse."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def _memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def _line(of: dict[str, Any]) -> str:
    return (
        f"| {of['store']} | {of['schedules']:,} | {of['start_seconds']:.2f} s | {of['cpu_share']:.2%} | "
        f"{of['memory_mib']:.1f} MiB |"
    )
