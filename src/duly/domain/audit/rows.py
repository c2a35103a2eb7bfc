"""What a ledger row says against itself, or against the jobs that were put for it."""

from collections.abc import Iterator

from duly.domain.audit.findings import Law
from duly.domain.audit.records import AuditedRun, LiveJob
from duly.domain.instants import Instant, written
from duly.domain.runs import RunStatus

Fault = tuple[Law, str]


def faults_of(audited: AuditedRun, *, alive_at: Instant | None) -> Iterator[Fault]:
    """`alive_at` is the last sign of life of anyone who could have taken over from a session that is gone."""
    run, live = audited.run, audited.live
    if run.status.is_terminal and run.completed_at is None:
        yield Law.BACKWARDS, f"is {run.status}, but has no time of completion"
    if not run.status.is_terminal and run.completed_at is not None:
        yield Law.BACKWARDS, f"is {run.status}, but was completed at {written(run.completed_at)}"
    if run.status is RunStatus.SKIPPED and run.reason is None and run.job_id is None:
        yield Law.BACKWARDS, "is skipped, but for no reason"
    if run.status.is_terminal and live is not None:
        yield Law.BACKWARDS, f"is {run.status}, but its job {live.id} is live"
    if not run.status.is_terminal and live is None:
        yield Law.STUCK, f"is {run.status}, but none of its jobs is live"
    if not run.status.is_terminal and live is not None and (gone := _gone(live, alive_at)):
        yield Law.STUCK, f"is {run.status} in {gone}"
    if audited.completed > 1:
        yield Law.DOUBLED, f"has {audited.completed} jobs that completed, in one chain of retries"


def _gone(live: LiveJob, alive_at: Instant | None) -> str | None:
    """The session that has the job, if it has been silent for a whole lease after its lease ran out."""
    if live.session is None:
        return None
    if live.seen_at is None or live.lease is None:
        return f"session {live.session}, which is gone"
    if alive_at is not None and live.seen_at + 2 * live.lease < alive_at:
        return f"session {live.session}, which was last seen at {written(live.seen_at)}, and nobody has taken over"
    return None
