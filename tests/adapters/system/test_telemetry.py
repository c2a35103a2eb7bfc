"""Facts as log lines and metrics: complete, bounded, and without what people put into jobs."""

import asyncio
import io
import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families

from duly.application.telling import Everybody, Nobody
from duly.bootstrap import Queue
from duly.domain.decisions import Decision, Fate
from duly.domain.health import Census
from duly.domain.ids import JobId, PoolName, RunId, ScheduleId, SessionId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import Ending, Job, JobState, JobStatus
from duly.domain.payloads import value_of
from duly.domain.pools import Pool
from duly.domain.runs import GapReason, Reason
from duly.domain.sessions import ClaimedJob, Report, Rescue
from duly.system.telemetry import COUNTERS, GAUGES, HISTOGRAMS, Telemetry, configure_logging
from tests.adapters.worker.working import POOL, claimed, ended, put, until, working

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
NOON = Instant(1_800_000_000 * SECOND)
SECRET = "xyzzy-plugh"  # noqa: S105 - it opens nothing


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    lines = io.StringIO()
    configure_logging("debug", json=True, to=lines)
    yield lines
    structlog.reset_defaults()


def said(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def decision(fate: Fate, **facts: Any) -> Decision:
    return Decision(schedule_id=ScheduleId("digest"), at=NOON, fate=fate, slot=NOON, **facts)


def values_of(text: bytes) -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.mark.req("CRON-12")
@pytest.mark.parametrize("fate", list(Fate))
def test_every_decision_is_one_line_with_its_reason(log: io.StringIO, fate: Fate) -> None:
    fact = decision(fate, run_id=RunId("run_1"), reason=Reason.OVERLAP, detail="run_0 runs\nand on", late=Micros(7_000))

    Telemetry().decided([fact])

    (line,) = said(log)
    assert line.pop("timestamp").endswith("Z")
    assert line.pop("level") in ("info", "warning", "error")
    assert line == {
        "event": f"slot_{fate}",
        "schedule_id": "digest",
        "slot": "2027-01-15T08:00:00Z",
        "run_id": "run_1",
        "fate": fate,
        "reason": "overlap",
        "detail": "run_0 runs",
        "late_ms": 7,
    }


@pytest.mark.req("RISK-04")
def test_missed_slots_are_counted_and_a_warning(log: io.StringIO) -> None:
    telemetry = Telemetry()

    telemetry.decided([decision(Fate.MISSED, last=Instant(NOON + 58 * 60 * SECOND), count=59, reason=GapReason.OUTAGE)])

    (line,) = said(log)
    assert (line["level"], line["count"], line["reason"]) == ("warning", 59, "outage")
    assert line["last"] == "2027-01-15T08:58:00Z"
    assert values_of(telemetry.metrics(None, now=NOON))["duly_slots_missed_total",] == 59


@pytest.mark.req("RISK-04", error=True)
def test_the_page_has_an_alert_for_missed_slots_by_the_name_they_are_counted_under() -> None:
    rules = PAGE.read_text().partition("## Alerts")[2]

    assert "increase(duly_slots_missed_total[10m])) > 0" in rules
    assert set(re.findall(r"duly_\w+", rules)) <= {*GAUGES, *COUNTERS, "duly_drift_seconds_bucket"}


@pytest.mark.req("CRON-12")
def test_slots_and_their_drift_are_counted(log: io.StringIO) -> None:
    telemetry = Telemetry()

    telemetry.decided([decision(Fate.OPENED, late=Micros(3_000)), decision(Fate.OPENED, late=Micros(700_000))], due=4)
    telemetry.decided([decision(Fate.SKIPPED), decision(Fate.CAUGHT_UP), decision(Fate.FAILED), decision(Fate.BROKEN)])

    values = values_of(telemetry.metrics(None, now=NOON))
    names = ("schedules_due", "runs_emitted", "runs_skipped_overlap", "runs_caught_up", "runs_failed_launch")
    assert [values[f"duly_{name}_total",] for name in names] == [4, 3, 1, 1, 1]
    assert values["duly_schedules_broken_total",] == 1
    assert [values["duly_drift_seconds_bucket", bound] for bound in ("0.002", "0.005", "0.5", "1.0", "+Inf")] == [
        0, 1, 1, 2, 2,
    ]  # fmt: skip
    assert values["duly_drift_seconds_sum",] == pytest.approx(0.703)


def test_failures_lost_sessions_and_rescues_are_counted_and_said(log: io.StringIO) -> None:
    telemetry = Telemetry()

    telemetry.failed("keep time", OSError("disk\x1b full\nat sector 7"))
    telemetry.session_lost(SessionId("ses_1"), running=2)
    telemetry.rescued([Rescue(session=SessionId("ses_2"), returned=1, failed=3, tickets=0, ended=True)])

    failed, lost, rescued = said(log)
    assert (failed["event"], failed["what"], failed["error"]) == (
        "failed",
        "keep time",
        "OSError: disk\N{REPLACEMENT CHARACTER} full",
    )
    assert (lost["event"], lost["session"], lost["running"]) == ("session_lost", "ses_1", 2)
    assert (rescued["event"], rescued["returned"], rescued["failed"]) == ("session_rescued", 1, 3)
    values = values_of(telemetry.metrics(None, now=NOON))
    assert values["duly_failures_total", "keep time"] == 1
    assert values["duly_sessions_lost_total",] == values["duly_sessions_rescued_total",] == 1


def test_what_the_store_holds_is_shown_when_asked() -> None:
    census = Census(
        schedules={"active": 3, "broken": 1},
        jobs={(POOL, JobState.READY): 5},
        runs_in_flight=2,
        sessions=1,
        pools=[Pool(name=PoolName("gpu"), slots=4, used=3)],
        oldest_ready_at=Instant(NOON - 90 * SECOND),
    )

    values = values_of(Telemetry().metrics(census, now=NOON))

    assert values["duly_schedules", "broken"] == 1
    assert values["duly_jobs", "wide", "ready"] == 5
    assert (values["duly_pool_slots", "gpu"], values["duly_pool_used", "gpu"]) == (4, 3)
    assert values["duly_oldest_ready_seconds",] == 90


def test_the_page_lists_every_metric_with_its_kind_and_no_other() -> None:
    rows = re.findall(r"^\| `(duly_\w+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE)

    kinds = {"counter": COUNTERS, "gauge": GAUGES, "histogram": HISTOGRAMS}
    assert sorted(rows) == sorted((name, kind) for kind, names in kinds.items() for name in names)


@pytest.mark.req("CRON-12", error=True)
def test_no_line_and_no_metric_holds_what_a_job_was_given_or_gave(log: io.StringIO) -> None:
    telemetry = Telemetry()

    async def answer(job: object) -> dict[str, str]:
        return {"answer": SECRET}

    async def fail(job: object) -> None:
        raise RuntimeError(f"no luck\n{SECRET}")

    async def complain(job: ClaimedJob) -> None:
        raise ValueError(f"{value_of(job.payload)['password']} is too short")

    async def scenario() -> list[str | None]:
        handlers = {"answer": answer, "fail": fail, "complain": complain}
        async with working(handlers, telemetry=telemetry) as (queue, _):
            jobs = [await put(queue, kind, params={"password": SECRET}) for kind in handlers]
            return [(await ended(queue, job)).error for job in jobs]

    kept = asyncio.run(scenario())

    ends = {line["kind"]: line for line in said(log) if line["event"] == "job_ended"}
    assert kept == [None, f"RuntimeError: no luck\n{SECRET}", f"ValueError: {SECRET} is too short"]
    assert {kind: line["status"] for kind, line in ends.items()} == {
        "answer": "COMPLETED",
        "fail": "FAILED",
        "complain": "FAILED",
    }
    assert (ends["fail"]["error"], ends["complain"]["error"]) == ("RuntimeError", "ValueError")
    assert {line["event"] for line in said(log)} == {"job_started", "job_ended"}
    metrics = telemetry.metrics(None, now=NOON)
    assert SECRET not in log.getvalue() + metrics.decode()
    values = values_of(metrics)
    assert values["duly_jobs_ended_total", "wide", "FAILED"] == 2
    assert values["duly_jobs_started_total", "wide"] == values["duly_job_seconds_count", "wide"] == 3


class Listener(Nobody):
    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.lost: list[tuple[SessionId, int]] = []
        self.rescues: list[Rescue] = []

    def exchanged(self, started: Sequence[ClaimedJob], ended: Sequence[Report]) -> None:
        self.reports += ended

    def session_lost(self, session: SessionId, *, running: int) -> None:
        self.lost.append((session, running))

    def rescued(self, rescues: Sequence[Rescue]) -> None:
        self.rescues += rescues


async def session_of(queue: Queue, job_id: JobId) -> SessionId:
    """Of a job that a worker has entered."""
    while True:
        job = await queue.jobs.get(job_id)
        if isinstance(job, Job) and job.session is not None:
            return job.session
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_worker_says_how_long_handlers_took(is_async: bool) -> None:
    listener = Listener()

    async def nap(_: ClaimedJob) -> None:
        await asyncio.sleep(0.05)

    def block(_: ClaimedJob) -> None:
        time.sleep(0.05)

    async def scenario() -> None:
        async with working({"nap": nap if is_async else block}, telemetry=listener) as (queue, _):
            await ended(queue, await put(queue, "nap"))
            await until(lambda: bool(listener.reports))

    asyncio.run(scenario())

    assert 50_000 <= listener.reports[0].ran_for < 10_000_000


def test_a_worker_says_that_its_session_was_lost_and_that_it_rescued_others() -> None:
    listener = Listener()

    async def linger(_: ClaimedJob) -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with working({"linger": linger}, telemetry=listener, lease=Micros(SECOND)) as (queue, _):
            dead = await queue.sessions.open(name="dead", lease=Micros(SECOND // 10))
            await until(lambda: [rescue.session for rescue in listener.rescues] == [dead.id])
            job_id = await put(queue, "linger")
            session = await session_of(queue, job_id)
            await queue.sessions.close(session)
            await until(lambda: listener.lost == [(session, 1)])

    asyncio.run(scenario())


def test_a_report_that_came_too_late_is_not_told() -> None:
    listener = Listener()

    async def scenario() -> None:
        may_end = asyncio.Event()

        async def linger(_: ClaimedJob) -> None:
            await may_end.wait()

        async with working({"linger": linger}, telemetry=listener) as (queue, _):
            job_id = await put(queue, "linger")
            await session_of(queue, job_id)
            await queue.sessions.revoke(job_id, reason="enough")
            may_end.set()
            last = await put(queue, "linger")
            await ended(queue, last)
            await until(lambda: bool(listener.reports))
            assert [report.job.id for report in listener.reports] == [last]

    asyncio.run(scenario())


def test_everybody_is_told_everything() -> None:
    class Parrot(Nobody):
        def __init__(self) -> None:
            self.heard: list[str] = []

        def __getattribute__(self, name: str) -> Any:
            if name in ("decided", "failed", "exchanged", "session_lost", "rescued"):
                return lambda *_, **__: self.heard.append(name)
            return super().__getattribute__(name)

    listeners = [Parrot(), Parrot()]
    everybody = Everybody(*listeners)

    everybody.decided([], due=1)
    everybody.failed("open", ValueError())
    everybody.exchanged([], [Report(claimed(), Ending(status=JobStatus.COMPLETED))])
    everybody.session_lost(SessionId("ses"), running=0)
    everybody.rescued([])

    assert [listener.heard for listener in listeners] == [
        ["decided", "failed", "exchanged", "session_lost", "rescued"]
    ] * 2


def test_a_terminal_gets_text_and_a_pipe_gets_json() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), io.StringIO()
    for file in (terminal, pipe):
        configure_logging(to=file)
        Telemetry().failed("open", ValueError("no"))
    structlog.reset_defaults()

    assert json.loads(pipe.getvalue())["what"] == "open"
    with pytest.raises(json.JSONDecodeError):
        json.loads(terminal.getvalue())
    assert "failed" in terminal.getvalue()


def test_a_log_that_nobody_reads_stops_nobody() -> None:
    closed = io.StringIO()
    configure_logging(json=True, to=closed)
    telemetry = Telemetry()
    closed.close()

    telemetry.failed("open", ValueError("no"))

    structlog.reset_defaults()
