"""Kills the process groups of a worker that died.

Run as a program of its own, by its path and without Duly, so that it starts quickly and outlives whatever it watches.
Its input names groups: `+7` to watch, `-7` to forget. When the input ends, however that happened, so did the worker.
"""

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    # It ends with the worker, not with whoever tells everybody to stop.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin.buffer:
        with suppress(ValueError):  # half a line, which the worker died over
            change = int(line)
            groups.add(change) if change > 0 else groups.discard(-change)
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
