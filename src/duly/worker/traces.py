"""Where a handler raised: its own frames, without those that lead to it, kept with the job."""

import asyncio
import importlib
import os
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path

from duly.domain.logs import LogLevel
from duly.worker.context import Voice

MOST_LINES = 50
LONGEST_LINE = 160

_PACKAGES = tuple({f"{sysconfig.get_path(kind)}{os.sep}" for kind in ("purelib", "platlib")})
_LIBRARIES = (
    *_PACKAGES,
    *{f"{sysconfig.get_path(kind)}{os.sep}" for kind in ("stdlib", "platstdlib")},
    f"{Path(__file__).parent.parent}{os.sep}",
    "<frozen ",
)
# What stands between a worker and the function it calls.
_MACHINERY = (
    *(f"{Path(file).parent}{os.sep}" for file in (__file__, asyncio.__file__, importlib.__file__)),
    "<frozen ",
)

Frames = Sequence[traceback.FrameSummary]


def tell_trace(voice: Voice, error: BaseException) -> None:
    """As lines of the job's log; nothing, if the run never came to a line of its own."""
    try:
        lines = trace_lines(error)
    except Exception:  # noqa: BLE001 - an error that cannot be shown is still one: its run fails with its text
        return
    if lines:
        voice.say(LogLevel.ERROR, "\n".join(lines).encode("utf-8", "replace"))


def trace_lines(error: BaseException) -> list[str]:
    """The traceback, of libraries only the frame that raised; its middle is left out if it is long."""
    told = traceback.TracebackException.from_exception(error)
    if not _entered(told.stack):
        return []
    _trim(told)
    lines = [line[:LONGEST_LINE] for line in "".join(told.format()).splitlines()]
    if len(lines) <= MOST_LINES:
        return lines
    half = MOST_LINES // 2
    left_out = len(lines) - MOST_LINES + 1
    return [*lines[: half - 1], f"  … {left_out} lines are left out here …", *lines[-half:]]


def own_frames(error: BaseException) -> list[str]:
    """The program's own, as a traceback shows them."""
    frames = _entered(traceback.TracebackException.from_exception(error).stack)
    return traceback.StackSummary.from_list([each for each in frames if _is_own(each, frames[0])]).format()


def place_of(error: BaseException) -> str | None:
    """The last line of the program's own, such as `schedules.py:12 in helper`."""
    frames = _entered([_summary(*each) for each in traceback.walk_tb(error.__traceback__)])
    own = [frame for frame in frames if _is_own(frame, frames[0])]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno} in {own[-1].name}" if own else None


def _summary(frame: object, line: int | None) -> traceback.FrameSummary:
    """Without its source, which takes reading a file."""
    code = frame.f_code  # type: ignore[attr-defined]
    return traceback.FrameSummary(code.co_filename, line, code.co_name, lookup_line=False)


def _trim(told: traceback.TracebackException) -> None:
    """With the errors it came from, and those it is a group of."""
    frames = _entered(told.stack)
    kept = [frame for frame in frames if frame is frames[-1] or _is_own(frame, frames[0])]
    told.stack = traceback.StackSummary.from_list(kept)
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if other is not None:
            _trim(other)


def _entered(frames: Frames) -> Frames:
    """From the first frame of the function that was called."""
    for place, frame in enumerate(frames):
        if not frame.filename.startswith(_MACHINERY):
            return frames[place:]
    return []


def _is_own(frame: traceback.FrameSummary, first: traceback.FrameSummary) -> bool:
    """A library is not, unless it is the one whose function was called."""
    file = frame.filename
    return file.startswith(_home_of(first.filename)) or not file.startswith(_LIBRARIES)


def _home_of(file: str) -> str:
    """The package of a function that is installed as a library; else its file."""
    for folder in _PACKAGES:
        if file.startswith(folder):
            return str(Path(folder, Path(file).relative_to(folder).parts[0]))
    return file
