"""How far something has come, for whoever waits: one line that moves on a terminal, a line per change elsewhere."""

import sys
from typing import TYPE_CHECKING

from duly.cli.waiting import LOOK_EVERY
from duly.domain.groups import Group, GroupStatus, MemberState, Progress
from duly.domain.instants import Instant

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_WIDTH = 24


def bar(progress: Progress) -> str:
    """`[######------] 2/4  COMPLETED 1, FAILED 1, live 2`."""
    done = progress.ended * _WIDTH // max(progress.size, 1)
    counts = ", ".join(f"{state.value} {progress[state]}" for state in MemberState if progress[state])
    return f"[{'#' * done}{'-' * (_WIDTH - done)}] {progress.ended}/{progress.size}  {counts}"


async def end_of_group(queue: "Queue", group_id: str, *, deadline: Instant | None) -> Group | None:
    """Shows how far it is until it has ended; None if it has not by then."""
    shown, clock = "", queue.storage.clock
    try:
        while True:
            group = await queue.groups.get(group_id, owner=None)
            shown = _show(bar(await queue.groups.progress(group_id, owner=None)), shown)
            if group.status is not GroupStatus.RUNNING:
                return group
            if deadline is not None and clock.now() >= deadline:
                return None
            await clock.sleep(LOOK_EVERY)
    finally:
        if sys.stderr.isatty():
            sys.stderr.write("\n")


def _show(line: str, before: str) -> str:
    if line != before:
        sys.stderr.write(f"\r\x1b[K{line}" if sys.stderr.isatty() else f"{line}\n")
        sys.stderr.flush()
    return line
