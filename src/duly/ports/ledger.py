"""The ledger as a store keeps it: runs, gaps, arrears, and the spans in which time was kept."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from duly.domain.coverage import Span
from duly.domain.ids import JobId, RunId, ScheduleId
from duly.domain.instants import Instant, Micros
from duly.domain.openings import InFlight
from duly.domain.runs import Arrears, Gap, Run


class Agenda(NamedTuple):
    """When the next slot of any schedule fires, the next missed one is due, the next claim is to be revoked."""

    fire_at: Instant | None
    arrears_at: Instant | None
    revoke_at: Instant | None


class LedgerStore(Protocol):
    """A run's status moves forwards only. Claiming and ending its job move it, in the job's own transaction."""

    async def add(self, runs: Sequence[Run]) -> set[RunId]:
        """Adds rows whose slots and keys are free; answers which."""

    async def get(self, run_id: RunId) -> Run | None: ...

    async def slot(self, schedule_id: ScheduleId, scheduled_for: Instant) -> Run | None:
        """The row of a planned slot."""

    async def by_key(self, schedule_id: ScheduleId, own_key: str) -> list[Run]:
        """The rows of a manual run or of a backfill, by the key it was given."""

    async def of_schedule(
        self, schedule_id: ScheduleId, *, before: Instant | None, most: int, since: Instant | None = None
    ) -> list[Run]:
        """The newest first by slot, all kinds; `before` and `since` bound the slot, the first excluded."""

    async def in_flight(self, schedule_ids: Sequence[ScheduleId]) -> Mapping[ScheduleId, InFlight]:
        """What has not ended, oldest slot first; schedules without any may be left out."""

    async def close(self, runs: Sequence[Run]) -> None:
        """Writes status, reason, detail, error and completion of rows that are not terminal yet."""

    async def add_gaps(self, gaps: Sequence[Gap]) -> None:
        """Appends; a gap that continues its schedule's last one, for the same reason and revision, extends it."""

    async def gaps(self, schedule_id: ScheduleId, *, since: Instant | None = None) -> list[Gap]: ...

    async def owe(self, arrears: Sequence[Arrears]) -> None:
        """Remembers missed slots that are to be caught up, or moves their cursor; none left forgets them."""

    async def arrears_due(self, now: Instant, most: int) -> list[Arrears]:
        """The earliest first, of each schedule its oldest, kept from others until commit; locked ones are left out."""

    async def arrears(self, schedule_id: ScheduleId) -> list[Arrears]: ...

    async def keep_alive(self, now: Instant, *, outage_after: Micros) -> Span:
        """Extends the last span of coverage to now, or begins a new one after an outage; answers it.

        A clock that was set back to where nobody was covers that from then on; what was recorded before stays.
        """

    async def coverage(self, since: Instant) -> list[Span]:
        """Spans that end at or after an instant, and the one before them, in order."""

    async def revoke_later(self, job_id: JobId, *, at: Instant, reason: str) -> None:
        """A run that was asked to stop loses its claim at an instant, unless it has ended by then."""

    async def revocations_due(self, now: Instant, most: int) -> list[tuple[JobId, str]]:
        """Taken out; kept from others until commit."""

    async def agenda(self) -> Agenda: ...
