"""Duly: a durable scheduler for AI workflows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from duly.domain.errors import Conflict, DulyError, InvalidInput, NotFound, Refused, Unavailable
from duly.version import __version__

if TYPE_CHECKING:
    from duly.app.duly import Duly
    from duly.bootstrap import DoNotRetry, JobContext, Settings, Stopped
    from duly.domain.cadence import cron, every, once
    from duly.domain.jobs import JobFailed, JobNotEnded
    from duly.domain.slots import Slot
    from duly.domain.templates import Command

__all__ = [
    "Command",
    "Conflict",
    "DoNotRetry",
    "Duly",
    "DulyError",
    "InvalidInput",
    "JobContext",
    "JobFailed",
    "JobNotEnded",
    "NotFound",
    "Refused",
    "Settings",
    "Slot",
    "Stopped",
    "Unavailable",
    "__version__",
    "cron",
    "every",
    "once",
]

# Imported when they are asked for, so that whoever needs one of them does not wait for all.
_HOMES = {
    "Command": "duly.domain.templates",
    "DoNotRetry": "duly.bootstrap",
    "Duly": "duly.app.duly",
    "JobContext": "duly.bootstrap",
    "JobFailed": "duly.domain.jobs",
    "JobNotEnded": "duly.domain.jobs",
    "Settings": "duly.bootstrap",
    "Slot": "duly.domain.slots",
    "Stopped": "duly.bootstrap",
    "cron": "duly.domain.cadence",
    "every": "duly.domain.cadence",
    "once": "duly.domain.cadence",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'duly' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
