"""The machine's own clocks, for a store whose processes all live on one machine."""

import asyncio
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from duly.domain.instants import Instant, Micros

# Boot time goes on while the machine sleeps, so a lease also runs out in a closed laptop. Elsewhere than on
# Linux the monotonic clock of the kernel is the nearest: macOS counts sleep in it, too.
_LEASE_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

UNKNOWN_BOOT = "unknown-boot"
"""The era of a machine that does not name its boots: after a reboot old leases are taken for readings of this
boot, so a lease from before may hold for as long as the machine had been up. Linux, macOS and FreeBSD name
theirs.
"""


class SystemClock:
    """Processes on one machine share these clocks by nature."""

    __slots__ = ("era",)

    def __init__(self) -> None:
        self.era = boot_id()

    def now(self) -> Instant:
        return Instant(time.time_ns() // 1_000)

    def lease_now(self) -> Micros:
        return Micros(time.clock_gettime_ns(_LEASE_CLOCK) // 1_000)

    async def agree(self) -> None:
        """All processes of a SQLite file share this machine's clocks."""

    async def sleep(self, duration: Micros) -> None:
        await asyncio.sleep(max(duration, 0) / 1_000_000)


@cache
def boot_id() -> str:
    if sys.platform == "linux":
        return _read_boot_id(Path("/proc/sys/kernel/random/boot_id"))
    name = "kern.bootsessionuuid" if sys.platform == "darwin" else "kern.boot_id"
    return _ask_kernel(name)


def _read_boot_id(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip() or UNKNOWN_BOOT
    except OSError:
        return UNKNOWN_BOOT


def _ask_kernel(name: str) -> str:
    sysctl = shutil.which("sysctl") or "/usr/sbin/sysctl"
    try:
        answer = subprocess.run([sysctl, "-n", name], capture_output=True, text=True, timeout=5, check=True)  # noqa: S603  # fixed words
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN_BOOT
    return answer.stdout.strip() or UNKNOWN_BOOT
