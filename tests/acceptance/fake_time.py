"""A time of day that a test sets while processes run, by the preloaded library of the `libfaketime` wheel.

Only the time of day is shifted. Monotonic and boot-time clocks go on, as they do on a machine whose clock is set.
"""

import importlib.util
import tempfile
import time
from pathlib import Path

import pytest

from duly.domain.instants import SECOND, Instant
from duly.ports.clock import Clock
from duly.system.clock import SystemClock

_WHEEL = importlib.util.find_spec("libfaketime")

needs_fake_time = pytest.mark.skipif(_WHEEL is None, reason="no libfaketime wheel for this platform")


class FakeTime:
    """One for all processes that are started with its `environment`, among them a Postgres server."""

    def __init__(self, shift_seconds: float = 0) -> None:
        # Not below pytest's temporary folder, which is closed to the user that Postgres runs as.
        self._folder = tempfile.TemporaryDirectory(prefix="duly-time-")
        folder = Path(self._folder.name)
        folder.chmod(0o755)
        self._file = folder / "shift"
        self._next = folder / "next"
        self.shift_seconds = shift_seconds
        self.set(shift_seconds)

    @property
    def environment(self) -> dict[str, str]:
        assert _WHEEL is not None
        assert _WHEEL.origin is not None
        library = Path(_WHEEL.origin).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
        return {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, shift_seconds: float) -> None:
        """At once, for everybody: whoever looks sees the old shift or the new one."""
        self._next.write_text(f"{shift_seconds:+.6f}\n")
        self._next.chmod(0o644)
        self._next.replace(self._file)
        self.shift_seconds = shift_seconds

    def set_to(self, second: float) -> None:
        """To a second since 1970, from where it goes on."""
        self.set(second - time.time())

    def now(self) -> float:
        return time.time() + self.shift_seconds

    @property
    def clock(self) -> Clock:
        """The same time of day for whoever is not started with the environment."""
        return _ShiftedClock(self)

    def close(self) -> None:
        self._folder.cleanup()


class _ShiftedClock(SystemClock):
    __slots__ = ("_time",)

    def __init__(self, time_: FakeTime) -> None:
        super().__init__()
        self._time = time_

    def now(self) -> Instant:
        return Instant(super().now() + int(self._time.shift_seconds * SECOND))
