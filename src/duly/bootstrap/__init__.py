"""Joins ports and adapters: the only place that names a database, a clock or a pair of dice."""

import inspect
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from duly.bootstrap.queue import Queue, changing, looking
from duly.bootstrap.service import serve
from duly.bootstrap.stores import backup, database_file, open_storage, reading, store_facts
from duly.domain.errors import InvalidInput
from duly.domain.instants import moment_of
from duly.graphs.registry import Registry
from duly.settings import Settings, all_problems, settings_from
from duly.storage.facts import StoreFacts
from duly.system.clock import SystemClock
from duly.worker.calls import Call
from duly.worker.commands import command, commands
from duly.worker.context import JobContext, Stopped
from duly.worker.coroutines import in_loop
from duly.worker.direct_calls import DirectCalls
from duly.worker.handlers import DoNotRetry, Handler
from duly.worker.isolation import isolated
from duly.worker.threads import in_thread
from duly.worker.traces import own_frames
from duly.worker.worker import GRACE, Worker

if TYPE_CHECKING:
    from duly.worker.graph_runs import GraphRuns

__all__ = [
    "GRACE",
    "Call",
    "DirectCalls",
    "DoNotRetry",
    "GraphRuns",
    "Handler",
    "JobContext",
    "Queue",
    "Registry",
    "Settings",
    "Stopped",
    "StoreFacts",
    "Worker",
    "backup",
    "changing",
    "command",
    "commands",
    "configure_logging",
    "database_file",
    "handler_for",
    "looking",
    "moment",
    "open_storage",
    "own_frames",
    "problems_of_environment",
    "reading",
    "serve",
    "settings_of_environment",
    "store_facts",
]


def handler_for(function: Callable[..., object], *, isolate: bool = False) -> Handler:
    """As a function runs best: async ones in the worker's loop, plain ones in a thread, isolated ones in a process."""
    if isolate:
        return isolated(function)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - of an object, not whether
        return in_loop(function)  # type: ignore[arg-type]
    return in_thread(function)


def problems_of_environment() -> Sequence[InvalidInput]:
    return all_problems(os.environ)


def configure_logging(settings: Settings, *, level: str = "info") -> None:
    """For the whole process, so it is for front doors to call; `level` is theirs unless the settings name one."""
    from duly.system.telemetry import configure_logging as configure

    configure(settings.log_level or level, json=settings.logs_json)


def settings_of_environment() -> Settings:
    return settings_from(os.environ)


def moment() -> datetime:
    """Now, for front doors that show times."""
    return moment_of(SystemClock().now())
