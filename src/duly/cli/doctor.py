"""`duly doctor`: facts about the database and those who use it, each with a verdict and a remedy."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from duly.cli import exits
from duly.cli.invoked import invoked
from duly.cli.output import say_json, table
from duly.cli.parser import Options, Parser, add_json
from duly.cli.shapes import at
from duly.domain.cadence import TZ_VERSION
from duly.domain.health import ALIVE_WITHIN, Census, Readiness
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import JobState

if TYPE_CHECKING:
    from duly.bootstrap import Queue, StoreFacts

Verdict = Literal["ok", "warning", "bad"]

_SHARED_FILE_SYSTEMS = ("nfs", "cifs", "smb", "fuse.sshfs", "9p", "afs", "ceph", "glusterfs", "lustre")
_LITTLE_SPACE = 500_000_000
_HARDLY_ANY_SPACE = 50_000_000
_LARGE_LOG = 256_000_000
_LARGE_OFFSET = 1 * SECOND
_LONG_WAIT = 600 * SECOND
_LONG_RUN = 86_400 * SECOND


class Fact(NamedTuple):
    name: str
    value: str
    verdict: Verdict = "ok"
    remedy: str = ""


def define(parser: Parser) -> None:
    add_json(parser)
    parser.set_defaults(run=doctor)


def doctor(options: Options) -> int:
    found = asyncio.run(_found())
    is_healthy = all(fact.verdict != "bad" for fact in found)
    if options.json:
        say_json({"facts": [fact._asdict() for fact in found], "healthy": is_healthy})
    else:
        table(("fact", "value", "verdict", "remedy"), found, empty="")
    return exits.OK if is_healthy else exits.FAILED


async def _found() -> list[Fact]:
    from duly import bootstrap

    settings = bootstrap.settings_of_environment()
    store = await bootstrap.store_facts(settings)
    found = [*_of_store(store), *_of_machine(store)]
    if store.is_current:
        found += await bootstrap.looking(settings, _of_work)
    return found


def _of_store(store: "StoreFacts") -> Iterator[Fact]:
    schema = f"{store.schema_found} of {store.schema_known}"
    remedy = "upgrade duly" if store.schema_found > store.schema_known else f"run {invoked()} db migrate"
    yield Fact("schema", schema) if store.is_current else Fact("schema", schema, "bad", remedy)
    yield Fact("engine", f"{store.engine} {store.version}")
    if store.engine == "sqlite":
        yield (
            Fact("log reset", "may lose commits", "bad", "install an apsw with SQLite 3.51.3 or later")
            if store.may_lose_a_reset_log
            else Fact("log reset", "safe in this SQLite")
        )
        is_wal = store.journal_mode == "wal"
        yield Fact(
            "journal mode", str(store.journal_mode), "ok" if is_wal else "bad", "" if is_wal else "use a local disk"
        )
        size, log = store.file_bytes or 0, store.log_bytes or 0
        yield Fact("file", f"{_megabytes(size)}, log {_megabytes(log)}", *_of_log(log))
    if store.clock_offset is not None:
        is_off = abs(store.clock_offset) > _LARGE_OFFSET
        yield Fact(
            "clock offset",
            f"{store.clock_offset / 1_000:.0f} ms",
            "warning" if is_off else "ok",
            "set this machine's clock" if is_off else "",
        )


def _of_log(log: int) -> tuple[Verdict, str]:
    if log <= _LARGE_LOG:
        return "ok", ""
    return "warning", "some program reads for very long; the log cannot be reset"


def _of_machine(store: "StoreFacts") -> Iterator[Fact]:
    yield Fact("tz data", TZ_VERSION)
    if store.path is None:
        return
    kind = file_system_of(Path(store.path), Path("/proc/mounts"))
    if kind is not None:
        is_shared = kind.startswith(_SHARED_FILE_SYSTEMS)
        yield Fact("file system", kind, "bad" if is_shared else "ok", "use a local disk" if is_shared else "")
    free = shutil.disk_usage(Path(store.path).parent).free
    verdict: Verdict = "bad" if free < _HARDLY_ANY_SPACE else "warning" if free < _LITTLE_SPACE else "ok"
    yield Fact("disk space", f"{_megabytes(free)} free", verdict, "" if verdict == "ok" else "free some space")


def file_system_of(path: Path, mounts: Path) -> str | None:
    """Of the innermost mount that holds the path; None where the system does not say."""
    try:
        rows = [line.split() for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return None
    holding = [(row[1], row[2]) for row in rows if len(row) > 2 and path.is_relative_to(row[1])]
    return max(holding, key=lambda mount: len(mount[0]))[1] if holding else None


async def _of_work(queue: "Queue") -> list[Fact]:
    now = queue.storage.clock.now()
    readiness, census = await queue.health.readiness(), await queue.health.census()
    running = await queue.jobs.list(owner=None, state=JobState.RUNNING, most=1_000)
    long = [job.id for job in running if job.started_at is not None and now - job.started_at > _LONG_RUN]
    remedy = f"it runs for over a day: {invoked()} job log {long[0]}" if long else ""
    stuck = Fact("stuck jobs", ", ".join(long[:3]), "warning", remedy)
    return [
        *_of_time(readiness, now),
        *_of_sessions(census, now),
        stuck if long else Fact("stuck jobs", "none"),
        _of_webhooks(*await queue.webhooks.set_aside()),
    ]


def _of_webhooks(aside: int, reason: str | None) -> Fact:
    if aside == 0:
        return Fact("webhooks set aside", "none")
    remedy = f"{reason}: upgrade and restart couriers, or see {invoked()} webhook deliveries --state failed"
    return Fact("webhooks set aside", str(aside), "warning", remedy)


def _of_time(readiness: Readiness, now: Instant) -> Iterator[Fact]:
    is_planned = readiness.next_fire_at is not None
    yield Fact("next fire", at(readiness.next_fire_at) or "nothing is planned")
    is_fresh = readiness.alive_at is not None and now - readiness.alive_at <= ALIVE_WITHIN
    is_missed = is_planned and not is_fresh
    yield Fact(
        "timekeeper",
        f"last alive {at(readiness.alive_at) or 'never'}",
        "bad" if is_missed else "ok",
        f"run {invoked()} timekeeper" if is_missed else "",
    )
    yield Fact(
        "overdue schedules",
        str(readiness.overdue),
        "bad" if readiness.overdue else "ok",
        f"run {invoked()} timekeeper" if readiness.overdue else "",
    )


def _of_sessions(census: Census, now: Instant) -> Iterator[Fact]:
    ready = sum(count for (_, state), count in census.jobs.items() if state is JobState.READY)
    is_idle = census.sessions == 0 and ready > 0
    remedy = f"run {invoked()} worker --app schedules.py" if is_idle else ""
    yield Fact("sessions", str(census.sessions), "warning" if is_idle else "ok", remedy)
    waited = 0 if census.oldest_ready_at is None else max(now - census.oldest_ready_at, 0)
    is_long = waited > _LONG_WAIT
    yield Fact(
        "ready jobs",
        f"{ready}, the oldest for {waited // SECOND} s",
        "warning" if is_long else "ok",
        f"add workers, or let more run at once: {invoked()} pool set default --slots 4" if is_long else "",
    )


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"
