"""The whole ledger to look at, in order of schedule and slot, a window at a time; nothing here writes."""

from typing import NamedTuple, Protocol

from duly.domain.audit import AuditedRun, Stray
from duly.domain.ids import JobId, ScheduleId
from duly.domain.instants import Instant
from duly.domain.jobs import FinishedJob, Job
from duly.domain.runs import Arrears, Gap
from duly.domain.schedules import Revision, Schedule


class Among(NamedTuple):
    """Schedules from one id through another."""

    first: ScheduleId
    last: ScheduleId


class AuditStore(Protocol):
    """Each window begins after the last thing of the one before, and is empty when nothing is left.

    `since` leaves out what ends at or before an instant.
    """

    async def schedules(self, *, after: ScheduleId | None, most: int, owner: str | None = None) -> list[Schedule]:
        """In order of id, tombstones among them; of every owner if none is named."""

    async def revisions(self, among: Among, *, after: Revision | None, most: int) -> list[Revision]: ...

    async def runs(self, among: Among, *, since: Instant, after: AuditedRun | None, most: int) -> list[AuditedRun]:
        """By slot, then by key, then by id; of every kind."""

    async def gaps(self, among: Among, *, since: Instant, after: Gap | None, most: int) -> list[Gap]:
        """By first slot."""

    async def arrears(self, among: Among, *, since: Instant, after: Arrears | None, most: int) -> list[Arrears]:
        """By first slot."""

    async def strays(self, *, after: JobId | None, most: int) -> tuple[list[Stray], JobId | None]:
        """Among the next `most` finished jobs; and the last of those, None if there are none."""

    async def last_gap(self, schedule_id: ScheduleId, *, through: Instant) -> Gap | None:
        """The last one that begins by then."""

    async def attempts(self, chain: JobId) -> list[Job | FinishedJob]:
        """The jobs of a chain that are still kept, first to last."""
