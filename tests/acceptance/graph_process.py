"""A `duly` command as people run it, in a process that may end itself at a named point; leases are short.

It is forked from one that has everything loaded: hundreds of processes, each loading for a second, test the loader.
"""

import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

# Loaded before anything is forked.
import apsw  # noqa: F401
import asyncpg  # noqa: F401
import genai_prices  # noqa: F401
import httpx2  # noqa: F401
import uvicorn  # noqa: F401

import duly.cli.serve
import duly.cli.worker
import duly.http.api
import duly.http.executions
import duly.http.server
import duly.system.telemetry
import duly.worker.graph_runs  # noqa: F401
from duly.__main__ import main
from duly.application.attempts import AttemptPace
from duly.bootstrap import graphs as wiring
from duly.domain.instants import SECOND, Micros
from tests.acceptance import crash_points
from tests.acceptance.crash_points import CrashPoint, Watch

LEASE_SECONDS = 2.0
GRACE_SECONDS = 0.5
PACE = partial(AttemptPace, lease=Micros(int(LEASE_SECONDS * SECOND)), grace=Micros(int(GRACE_SECONDS * SECOND)))


def live(
    command: Sequence[str], crash_at: CrashPoint | None, *, name: str, folder: Path, environment: Mapping[str, str]
) -> None:
    """Until it is killed, by somebody or by itself."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    errors = os.open(folder / f"{name}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(errors, stream)
    noted = (folder / f"{name}.statements").open("a", buffering=1)
    crash_points.install(Watch(crash_at, lambda statement: print(statement, file=noted)))
    vars(wiring)["AttemptPace"] = PACE
    sys.exit(main(list(command)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
