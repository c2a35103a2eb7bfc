"""The one place that turns facts into log lines and metrics. Payloads, results and secrets have no way in."""

import logging
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from duly.application.tally import DRIFT_BOUNDS_MS, Tally
from duly.domain.decisions import Decision, Fate
from duly.domain.health import Census
from duly.domain.ids import SessionId
from duly.domain.instants import SECOND, Instant, Micros, written
from duly.domain.jobs import JobStatus
from duly.domain.sessions import ClaimedJob, Report, Rescue

COUNTERS: Mapping[str, str] = {
    "duly_schedules_due_total": "Schedules that were judged because a slot of theirs fired.",
    "duly_runs_emitted_total": "Runs put for slots, those caught up among them.",
    "duly_runs_skipped_overlap_total": "Slots closed because a run of their schedule was still in flight.",
    "duly_runs_failed_launch_total": "Slots whose job could not be put.",
    "duly_runs_caught_up_total": "Runs put for slots that had been missed.",
    "duly_slots_missed_total": "Slots that nobody was there to open.",
    "duly_schedules_broken_total": "Schedules that could not be evaluated, and stopped.",
    "duly_jobs_started_total": "Jobs whose handlers were entered, by pool.",
    "duly_jobs_ended_total": "Jobs that ended, by pool and status.",
    "duly_sessions_lost_total": "Workers that lived on after their lease ran out.",
    "duly_sessions_rescued_total": "Dead workers whose claims were taken over.",
    "duly_failures_total": "Things that did not work and are tried again, by what they were.",
}
HISTOGRAMS: Mapping[str, str] = {
    "duly_drift_seconds": "How long after its time each slot was opened.",
    "duly_job_seconds": "How long handlers took, by pool.",
}
GAUGES: Mapping[str, str] = {
    "duly_schedules": "Schedules, by state.",
    "duly_jobs": "Live jobs, by pool and state.",
    "duly_runs_in_flight": "Runs that wait or run.",
    "duly_sessions": "Live workers.",
    "duly_pool_slots": "How many jobs of each pool may run at once.",
    "duly_pool_used": "How many places of each pool are in use.",
    "duly_oldest_ready_seconds": "How long the oldest ready job has been due.",
}
JOB_BOUNDS_SECONDS = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 3_600.0)

_LONGEST_ERROR = 300
Labels = TypeVar("Labels", bound=tuple[str, ...])
_LEVEL_OF: Mapping[Fate, int] = {
    Fate.MISSED: logging.WARNING,
    Fate.FAILED: logging.WARNING,
    Fate.BROKEN: logging.ERROR,
}


def configure_logging(level: str = "info", *, json: bool | None = None, to: TextIO | None = None) -> None:
    """For the process as a whole, so only front doors call it. JSON unless the lines go to a terminal."""
    file = to or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    as_json = not file.isatty() if json is None else json
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=file.isatty())
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=_Unbreakable(file)),  # type: ignore[arg-type]
    )
    handler = logging.StreamHandler(file)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared[:2], structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *shared[2:], renderer],
        )
    )
    logging.root.handlers = [handler]
    # Libraries say at INFO what concerns nobody here.
    logging.root.setLevel(max(number, logging.WARNING))


class Telemetry:
    """Counts and logs. Its label values are pools, states, statuses and words of the code: a bounded set."""

    def __init__(self) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger("duly").bind()
        self._tally = Tally()
        self._started: Counter[str] = Counter()
        self._ended: Counter[tuple[str, str]] = Counter()
        self._ran: dict[str, _Durations] = {}
        self._failures: Counter[str] = Counter()

    def decided(self, decisions: Sequence[Decision], *, due: int = 0) -> None:
        self._tally.decided(decisions, due=due)
        for decision in decisions:
            level = _LEVEL_OF.get(decision.fate, logging.INFO)
            if self._log.is_enabled_for(level):
                self._log.log(level, f"slot_{decision.fate}", **_facts_of(decision))

    def failed(self, what: str, error: Exception) -> None:
        self._tally.failed(what, error)
        self._failures[what] += 1
        self._log.warning("failed", what=what, error=_first_line(f"{type(error).__name__}: {error}"))

    def exchanged(self, started: Sequence[ClaimedJob], ended: Sequence[Report]) -> None:
        self._tally.exchanged(started, ended)
        self._started.update([job.pool for job in started])
        for report in ended:
            pool = report.job.pool
            self._ended[pool, report.ending.status] += 1
            (self._ran.get(pool) or self._ran.setdefault(pool, _Durations(JOB_BOUNDS_SECONDS))).add(report.ran_for)
        self._log_jobs(started, ended)

    def _log_jobs(self, started: Sequence[ClaimedJob], ended: Sequence[Report]) -> None:
        if self._log.is_enabled_for(logging.DEBUG):
            for job in started:
                self._log.debug("job_started", **_facts_of_job(job))
        for report in ended:
            level = logging.WARNING if report.ending.status is JobStatus.FAILED else logging.INFO
            if self._log.is_enabled_for(level):
                self._log.log(level, "job_ended", **_facts_of_job(report.job), **_facts_of_end(report))

    def session_lost(self, session: SessionId, *, running: int) -> None:
        self._tally.session_lost(session, running=running)
        self._log.warning("session_lost", session=session, running=running)

    def rescued(self, rescues: Sequence[Rescue]) -> None:
        self._tally.rescued(rescues)
        for rescue in rescues:
            facts = {"returned": rescue.returned, "failed": rescue.failed, "tickets": rescue.tickets}
            self._log.warning("session_rescued", session=rescue.session, **facts)

    def metrics(self, census: Census | None, *, now: Instant) -> bytes:
        """In Prometheus' text format: what this process counted, and what the store holds."""
        registry = CollectorRegistry()
        registry.register(_Once([*self._counted(), *(_gauges(census, now) if census else ())]))
        return generate_latest(registry)

    def _counted(self) -> Iterator[Metric]:
        tally = self._tally
        for name in (
            "schedules_due",
            "runs_emitted",
            "runs_skipped_overlap",
            "runs_failed_launch",
            "runs_caught_up",
            "slots_missed",
            "schedules_broken",
            "sessions_lost",
            "sessions_rescued",
        ):
            yield _counter(f"duly_{name}_total", (), {(): getattr(tally, name)})
        yield _counter("duly_jobs_started_total", ("pool",), {(pool,): count for pool, count in self._started.items()})
        yield _counter("duly_jobs_ended_total", ("pool", "status"), self._ended)
        yield _counter("duly_failures_total", ("what",), {(what,): count for what, count in self._failures.items()})
        drift = HistogramMetricFamily("duly_drift_seconds", HISTOGRAMS["duly_drift_seconds"])
        bounds = [bound / 1_000 for bound in DRIFT_BOUNDS_MS]
        drift.add_metric([], _buckets(bounds, tally.drift.counts), tally.drift.total / SECOND)
        yield drift
        ran = HistogramMetricFamily("duly_job_seconds", HISTOGRAMS["duly_job_seconds"], labels=["pool"])
        for pool, durations in self._ran.items():
            ran.add_metric([pool], _buckets(durations.bounds, durations.counts), durations.total / SECOND)
        yield ran


@dataclass(slots=True)
class _Durations:
    """A count for each bound in seconds, and one for what took longer than all."""

    bounds: Sequence[float]
    counts: list[int] = field(init=False)
    total: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, duration: Micros) -> None:
        self.counts[bisect_left(self.bounds, duration / SECOND)] += 1
        self.total += duration


class _Once(Collector):
    """What was counted, as it was when asked."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class _Unbreakable:
    """A log that nobody reads any more must not stop what it tells of."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._file.flush()


def _facts_of(decision: Decision) -> dict[str, object]:
    """Only what is known: a line without a run has no run's id."""
    facts = {
        "schedule_id": decision.schedule_id,
        "slot": None if decision.slot is None else written(decision.slot),
        "last": written(decision.last) if decision.last is not None and decision.count > 1 else None,
        "count": decision.count if decision.count > 1 else None,
        "run_id": decision.run_id,
        "fate": str(decision.fate),
        "reason": None if decision.reason is None else str(decision.reason),
        "detail": None if decision.detail is None else _first_line(decision.detail),
        "late_ms": decision.late // 1_000,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _facts_of_job(job: ClaimedJob) -> dict[str, object]:
    facts = {"job_id": job.id, "kind": job.kind, "pool": job.pool, "attempt": job.attempt}
    return facts if job.ledger_run is None else {**facts, "run_id": job.ledger_run}


def _facts_of_end(report: Report) -> dict[str, object]:
    facts = {"status": str(report.ending.status), "ran_ms": report.ran_for // 1_000}
    return facts if report.ending.error is None else {**facts, "error": _kind_of(report.ending.error)}


def _kind_of(error: str) -> str:
    """What stands before the colon, such as an exception's type: what follows may hold what the job was given."""
    return _first_line(error.partition(":")[0])


def _first_line(text: str) -> str:
    """Without what would steer a terminal."""
    line = next(iter(text.splitlines()), "")[:_LONGEST_ERROR]
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)


def _counter(name: str, labels: Sequence[str], counts: Mapping[Labels, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, COUNTERS[name], labels=labels)
    for values, count in counts.items():
        family.add_metric(values, count)
    return family


def _gauges(census: Census, now: Instant) -> Iterator[GaugeMetricFamily]:
    oldest = census.oldest_ready_at
    yield _gauge("duly_schedules", ("state",), {(state,): count for state, count in census.schedules.items()})
    yield _gauge("duly_jobs", ("pool", "state"), census.jobs)
    yield _gauge("duly_runs_in_flight", (), {(): census.runs_in_flight})
    yield _gauge("duly_sessions", (), {(): census.sessions})
    yield _gauge("duly_pool_slots", ("pool",), {(pool.name,): pool.slots for pool in census.pools})
    yield _gauge("duly_pool_used", ("pool",), {(pool.name,): pool.used for pool in census.pools})
    yield _gauge("duly_oldest_ready_seconds", (), {(): 0 if oldest is None else max(now - oldest, 0) / SECOND})


def _gauge(name: str, labels: Sequence[str], values: Mapping[Labels, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, GAUGES[name], labels=labels)
    for label_values, value in values.items():
        family.add_metric([str(label) for label in label_values], value)
    return family


def _buckets(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Each counts what is in those before it, too."""
    so_far = 0
    buckets: list[tuple[str, float]] = []
    for name, count in zip([*map(str, bounds), "+Inf"], counts, strict=True):
        so_far += count
        buckets.append((name, so_far))
    return buckets
