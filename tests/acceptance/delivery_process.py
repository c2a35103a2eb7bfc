"""A worker or a courier that may end itself, as `kill -9` does, at a named point: the product knows nothing of it.

Beside the points of statements, a courier has those of a call: `call:resolved`, `call:connected`, `call:sent` and
`call:answered`. It is `claimed` and `recorded` where the statements of that have committed.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Loaded before anything is forked.
import apsw  # noqa: F401
import asyncpg  # noqa: F401
import httpx2

import duly.wire.webhooks  # noqa: F401
from duly.application.deliveries import Deliveries
from duly.bootstrap import Queue
from duly.courier import sender
from duly.courier.lookups import safe_addresses
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Micros
from duly.domain.webhooks.addresses import Address
from duly.domain.webhooks.deliveries import Answer, DeliveryPace, Errand
from duly.settings import settings_from
from duly.version import __version__
from duly.worker.worker import GRACE
from tests.acceptance import crash_points, worker_process
from tests.acceptance.crash_points import CrashPoint, Watch
from tests.acceptance.journal import Journal

CALL = "call"
RESOLVED, CONNECTED, SENT, ANSWERED = (CrashPoint(CALL, each) for each in ("resolved", "connected", "sent", "answered"))
POOL = PoolName("wide")
EXECUTORS = 4
LEASE_SECONDS = 6
# Short, so that nobody waits for minutes; a call must still end well before its claim does.
PACE = DeliveryPace(
    backoff=Micros(SECOND // 5),
    growth=2,
    lease=Micros(LEASE_SECONDS * SECOND),
    first_byte_within_s=3.0,
    all_within_s=4.0,
    rest=Micros(SECOND),
    longest_rest=Micros(2 * SECOND),
    look_every=Micros(SECOND // 10),
)
_TRACED = {"connection.connect_tcp.complete": CONNECTED, "http11.send_request_body.complete": SENT}


def live(role: str, crash_at: CrashPoint | None, *, name: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Until it is killed, by somebody or by itself, or told to stop."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    errors = os.open(folder / f"{name}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(errors, stream)
    noted = (folder / f"{role}.statements").open("a", buffering=1)
    watch = Watch(crash_at, lambda statement: print(statement, file=noted))
    crash_points.install(watch)
    journal = Journal(folder / f"{role}.journal", fsync=True)
    if role == "worker":
        asyncio.run(worker_process.run(journal, {POOL: EXECUTORS}, GRACE))
    else:
        _watch_calls(watch, journal)
        asyncio.run(_deliver(journal))
    sys.exit(0)


async def _deliver(journal: Journal) -> None:
    queue = await Queue.open(settings_from(os.environ))
    courier = queue.courier(PACE)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, courier.stop)
    journal.note("ready")
    await courier.run()
    await queue.close()


def _watch_calls(watch: Watch, journal: Journal) -> None:
    """Its receiver can tell by whom it was called; what it holds and what it has recorded is in the journal."""
    _watch_errands(journal)
    resolve, answer = safe_addresses, sender._answered

    async def watched_resolve(*given: Any) -> Sequence[Address]:
        found = await resolve(*given)
        watch.reach(*RESOLVED[:2])
        return found

    async def trace(event: str, _: Mapping[str, Any]) -> None:
        if event in _TRACED:
            watch.reach(*_TRACED[event][:2])

    async def watched_answer(client: httpx2.AsyncClient, request: httpx2.Request, met: Any) -> None:
        request.extensions = {**request.extensions, "trace": trace}
        try:
            await answer(client, request, met)
        finally:
            if met.status is not None:
                watch.reach(*ANSWERED[:2])

    version = f"{__version__}+{os.getpid()}"
    vars(sender).update(__version__=version, safe_addresses=watched_resolve, _answered=watched_answer)


def _watch_errands(journal: Journal) -> None:
    claim, report = Deliveries.claim, Deliveries.report

    async def watched_claim(self: Deliveries, *given: Any, **named: Any) -> list[Errand]:
        errands = await claim(self, *given, **named)
        for errand in errands:
            journal.note("claimed", delivery=errand.delivery.id, claim=errand.claim)
        return errands

    async def watched_report(self: Deliveries, errand: Errand, answer: Answer) -> bool:
        is_good = await report(self, errand, answer)
        journal.note("recorded" if is_good else "late", delivery=errand.delivery.id, claim=errand.claim)
        return is_good

    for name, watched in (("claim", watched_claim), ("report", watched_report)):
        setattr(Deliveries, name, watched)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
