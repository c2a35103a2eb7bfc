"""What the audit is shown of the ledger, and of the jobs behind it."""

from dataclasses import dataclass

from duly.domain.ids import JobId, RunId, ScheduleId, SessionId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.runs import Arrears, Gap, GapReason, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """The live end of a run's chain of jobs; if a session has it, when that was last seen, unless it is gone."""

    id: JobId
    session: SessionId | None = None
    seen_at: Instant | None = None
    lease: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRun:
    """A ledger row, its live job, and how many jobs of its chain have completed."""

    run: Run
    live: LiveJob | None = None
    completed: int = 0

    @property
    def slot(self) -> int:
        return self.run.scheduled_for // SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Slots without rows: a gap's, with its reason, or those that are still owed. UTC seconds, both ends included."""

    first: int
    last: int
    slots: int
    revision: int
    reason: GapReason | None

    @classmethod
    def gap(cls, gap: Gap) -> "Missing":
        return cls(
            first=gap.first // SECOND,
            last=gap.last // SECOND,
            slots=gap.count,
            revision=gap.revision,
            reason=gap.reason,
        )

    @classmethod
    def owed(cls, arrears: Arrears) -> "Missing":
        return cls(
            first=arrears.next // SECOND,
            last=arrears.last // SECOND,
            slots=arrears.count,
            revision=arrears.revision,
            reason=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A job that completed for a run of this slot, though the run names another chain of jobs, or none."""

    job_id: JobId
    run_id: RunId
    schedule_id: ScheduleId
    slot: int
    named: JobId | None
