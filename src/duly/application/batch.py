"""What one transaction decides about slots: collected first, written after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from duly.application.catching_up import Taken, forgiven, owed_for
from duly.application.pace import Pace
from duly.application.places import Places
from duly.application.stopping import end_run
from duly.application.template_targets import resolved_entry
from duly.domain.coverage import Outage
from duly.domain.decisions import Decision, Fate
from duly.domain.errors import DulyError, InvalidInput, NotFound
from duly.domain.ids import JobId, JobKey, Lane, PoolName, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import Entry, PutOutcome, SlotJob
from duly.domain.keys import key_of_own_run
from duly.domain.openings import MOST_AT_ONCE, InFlight, Missed, Opening, plan
from duly.domain.policies import Overlap
from duly.domain.pools import Pool, PoolDraining, PoolMode, UnknownPool
from duly.domain.runs import Arrears, Gap, GapReason, Reason, Run, RunKind, RunStatus
from duly.domain.schedules import LANE_PREFIX, Schedule, Standing, later_run, slot_key, template_in
from duly.domain.templates import Origin
from duly.ports.clock import Clock
from duly.ports.dice import Dice
from duly.ports.storage import Transaction

MOST_ROWS = 1_000
_LONGEST_REASON = 500
_POSTPONED_FOR = Micros(60 * SECOND)
_REPLACED = "a later slot took its place"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Drawn:
    """Chance and time for one transaction: ids and places are numbered from here, so that a rerun repeats itself."""

    now: Instant
    run_id: str
    job_id: str
    position: int


def draw(clock: Clock, dice: Dice, places: Places, *, rows: int = MOST_ROWS + MOST_AT_ONCE) -> Drawn:
    now = clock.now()
    return Drawn(now, dice.new_id("run"), dice.new_id("job"), places.take(now, rows))


@dataclass(slots=True)
class _Row:
    """A row to add, and the job that is to run it, if any."""

    run: Run
    fate: Fate
    entry: Entry | None = None
    origin: Origin | None = None


class Batch:
    """Each schedule is judged by itself; `save` writes all of it, and then the batch can take more."""

    def __init__(self, drawn: Drawn, pace: Pace) -> None:
        self.now = drawn.now
        self.decisions: list[Decision] = []
        self._drawn = drawn
        self._pace = pace
        self._run_ids: Iterator[RunId] = (RunId(f"{drawn.run_id}-{n:04}") for n in count())
        self._job_numbers = count()
        self._rows: list[_Row] = []
        self._gaps: list[Gap] = []
        self._arrears: list[Arrears] = []
        self._stops: list[tuple[ScheduleId, RunId]] = []
        self._advanced: dict[ScheduleId, Standing] = {}
        self._broken: list[Schedule] = []

    @property
    def is_full(self) -> bool:
        return len(self._rows) >= MOST_ROWS

    def judge(
        self, schedule: Schedule, outages: Sequence[Outage], in_flight: InFlight, *, until: Instant | None = None
    ) -> Standing:
        """Decides what fires until then, by default now. A schedule that cannot be evaluated breaks, and no other."""
        until = self.now if until is None else until
        try:
            decided = plan(schedule, now=until, outages=outages, in_flight=in_flight, run_ids=self._run_ids)
            rows = [self._row_of(schedule, opening) for opening in decided.openings]
            owed = [owed_for(schedule, missed, now=self.now, pace=self._pace) for missed in decided.arrears]
        except Exception as error:  # noqa: BLE001 - whatever it was, the others have slots to open
            return self.break_down(schedule, error)
        self._rows += rows
        if decided.gaps or owed:
            self._account_for(schedule, decided.gaps, owed)
        if decided.withdraw or decided.stop:
            self._stops += [(schedule.id, RunId(run_id)) for run_id in (*decided.withdraw, *decided.stop)]
        ran = [opening.slot for opening in decided.openings if opening.reason is None]
        standing = Standing(
            schedule.id,
            decided.opened_through,
            decided.next_slot,
            decided.fire_at,
            later_run(schedule.last_run_at, max(ran)) if ran else schedule.last_run_at,
        )
        self._advanced[schedule.id] = standing
        return standing

    def break_down(self, schedule: Schedule, error: Exception) -> Standing:
        broken = schedule.broken(at=self.now, reason=f"{type(error).__name__}: {error}"[:_LONGEST_REASON])
        self._broken.append(broken)
        fact = Decision(schedule_id=schedule.id, at=self.now, fate=Fate.BROKEN, detail=broken.state_reason)
        self.decisions.append(fact)
        return broken.standing

    def catch_up(self, schedule: Schedule, planned: Schedule, taken: Taken) -> None:
        """Opens missed slots as they were `planned`, whatever the schedule has become."""
        self._rows += [
            self._opened(planned, slot, Fate.CAUGHT_UP, fire_at=planned.fires_at(slot)) for slot in taken.slots
        ]
        self._arrears.append(taken.left)
        self._ran(schedule, taken.slots)

    def forgive(self, owed: Arrears) -> None:
        gap, nothing = forgiven(owed, now=self.now)
        self._add_gap(gap)
        self._arrears.append(nothing)

    def postpone(self, owed: Arrears) -> None:
        """It stays owed, and is tried again when others have had their turn."""
        self._arrears.append(replace(owed, due_at=Instant(self.now + _POSTPONED_FOR)))

    def add(self, schedule: Schedule, slots: Sequence[int], *, kind: RunKind, own_key: str) -> None:
        """Runs that no cadence planned: by hand, or of a backfill."""
        self._rows += [self._opened(schedule, slot, Fate.OPENED, kind=kind, own_key=own_key) for slot in slots]
        self._ran(schedule, slots)

    def _ran(self, schedule: Schedule, slots: Sequence[int]) -> None:
        standing = self._advanced.get(schedule.id) or schedule.standing
        self._advanced[schedule.id] = standing.ran(max(slots))

    # Rows, jobs, gaps, arrears

    def _row_of(self, schedule: Schedule, opening: Opening) -> _Row:
        if opening.reason is None:
            return self._opened(schedule, opening.slot, Fate.OPENED, run_id=opening.run_id, fire_at=opening.fire_at)
        is_replaced = opening.reason is Reason.REPLACED
        run = Run(
            id=opening.run_id,
            schedule_id=schedule.id,
            owner=schedule.owner,
            revision=schedule.revision,
            scheduled_for=Instant(opening.slot * SECOND),
            fire_at=opening.fire_at,
            opened_at=self.now,
            status=RunStatus.CANCELLED if is_replaced else RunStatus.SKIPPED,
            reason=opening.reason,
            detail=opening.detail,
            completed_at=self.now,
        )
        return _Row(run, Fate.REPLACED if is_replaced else Fate.SKIPPED)

    def _opened(
        self,
        schedule: Schedule,
        slot: int,
        fate: Fate,
        *,
        run_id: RunId | None = None,
        fire_at: Instant | None = None,
        kind: RunKind = RunKind.SLOT,
        own_key: str = "",
    ) -> _Row:
        number = next(self._job_numbers)
        job_id = JobId(f"{self._drawn.job_id}-{number:04}")
        run = Run(
            id=run_id or next(self._run_ids),
            schedule_id=schedule.id,
            owner=schedule.owner,
            revision=schedule.revision,
            kind=kind,
            own_key=own_key,
            scheduled_for=Instant(slot * SECOND),
            fire_at=self.now if fire_at is None else fire_at,
            opened_at=self.now,
            job_id=job_id,
        )
        target, key = schedule.target, slot_key(schedule.id, slot)
        new = SlotJob(
            kind=target.kind,
            key=JobKey(key_of_own_run(own_key, key) if own_key else key),
            lane=None if schedule.policies.overlap is Overlap.ALLOW else Lane(LANE_PREFIX + schedule.id),
            pool=target.pool,
            priority=target.priority,
            run_at=run.fire_at if run.fire_at > self.now else None,
            retry=target.retry,
            timeout_ms=target.timeout_ms,
        )
        position = self._drawn.position + number
        return _Row(run, fate, Entry(job_id, new, target.payload, self.now, position, ledger_run=run.id))

    def _account_for(
        self, schedule: Schedule, gaps: Sequence[Missed], owed: Sequence[tuple[Arrears, Missed | None]]
    ) -> None:
        for missed in (*gaps, *(rest for _, rest in owed if rest)):
            self._miss(schedule, missed)
        for arrears, _ in owed:
            self._owe(arrears)

    def _miss(self, schedule: Schedule, missed: Missed) -> None:
        gap = Gap(
            schedule_id=schedule.id,
            reason=missed.reason,
            first=Instant(missed.first * SECOND),
            last=Instant(missed.last * SECOND),
            count=missed.count,
            recorded_at=self.now,
            revision=schedule.revision,
        )
        self._add_gap(gap)

    def _add_gap(self, gap: Gap) -> None:
        self._gaps.append(gap)
        self._note(Fate.MISSED, gap, reason=gap.reason)

    def _owe(self, arrears: Arrears) -> None:
        self._arrears.append(arrears)
        self._note(Fate.OWED, arrears)

    def _note(self, fate: Fate, span: Gap | Arrears, *, reason: GapReason | None = None) -> None:
        fact = Decision(
            schedule_id=span.schedule_id,
            at=self.now,
            fate=fate,
            slot=span.first,
            last=span.last,
            count=span.count,
            reason=reason,
            late=Micros(max(self.now - span.first, 0)),
        )
        self.decisions.append(fact)

    # Writing

    async def save(self, tx: Transaction) -> None:
        if rows := _emptied(self._rows):
            await self._resolve(tx, rows)
            await self._refuse(tx, rows)
            await self._put(tx, rows)
        if gaps := _emptied(self._gaps):
            await tx.ledger.add_gaps(gaps)
        if arrears := _emptied(self._arrears):
            await tx.ledger.owe(arrears)
        for schedule_id, run_id in _emptied(self._stops):
            await self._stop(tx, schedule_id, run_id)
        if self._advanced:
            await tx.schedules.advance(list(self._advanced.values()))
            self._advanced.clear()
        for broken in _emptied(self._broken):
            await tx.schedules.revise(broken)

    async def _resolve(self, tx: Transaction, rows: Sequence[_Row]) -> None:
        """Makes jobs of templates, as those are now; a row whose template makes none is closed with the reason."""
        for row in rows:
            if row.entry is None or template_in(row.entry.new.kind) is None:
                continue
            try:
                row.entry, row.origin = await resolved_entry(tx, row.entry, row.run.owner)
            except (InvalidInput, NotFound) as error:
                self._fail(row, str(error))

    async def _refuse(self, tx: Transaction, rows: Sequence[_Row]) -> None:
        """Closes rows whose jobs no pool would take: the others' must be put all the same."""
        for name in sorted({row.entry.new.pool for row in rows if row.entry}):
            refusal = refusal_of(await tx.pools.get(name), name)
            if refusal is not None:
                for row in rows:
                    if row.entry and row.entry.new.pool == name:
                        self._fail(row, str(refusal))

    def _fail(self, row: _Row, why: str) -> None:
        row.entry, row.fate = None, Fate.FAILED
        row.run = row.run._replace(
            status=RunStatus.ERROR,
            reason=Reason.LAUNCH,
            error_message=why,
            job_id=None,
            completed_at=self.now,
        )

    async def _put(self, tx: Transaction, rows: Sequence[_Row]) -> None:
        """A slot or key that has its row already keeps it, and gets no second job."""
        added = await tx.ledger.add([row.run for row in rows])
        rows = [row for row in rows if row.run.id in added]
        entering = [(row, row.entry) for row in rows if row.entry]
        if entering:
            puts = await tx.jobs.put([entry for _, entry in entering])
            taken = [
                (row, put.job_id)
                for (row, _), put in zip(entering, puts, strict=True)
                if put.outcome is not PutOutcome.CREATED
            ]
            if origins := [(entry.id, row.origin) for row, entry in entering if row.origin]:
                await tx.origins.save(origins)
            for row, job_id in taken:
                self._fail(row, f"job {job_id} has the key of this slot")
            if taken:
                await tx.ledger.close([row.run for row, _ in taken])
        self.decisions += [self._decision(row) for row in rows]

    def _decision(self, row: _Row) -> Decision:
        run = row.run
        return Decision(
            schedule_id=run.schedule_id,
            at=self.now,
            fate=row.fate,
            slot=run.scheduled_for,
            run_id=run.id,
            reason=run.reason,
            detail=run.detail or run.error_message,
            late=Micros(max(self.now - run.fire_at, 0)),
        )

    async def _stop(self, tx: Transaction, schedule_id: ScheduleId, run_id: RunId) -> None:
        if await end_run(tx, run_id, why=_REPLACED, reason=Reason.REPLACED, now=self.now, pace=self._pace):
            fact = Decision(
                schedule_id=schedule_id,
                at=self.now,
                fate=Fate.STOPPED,
                run_id=run_id,
                reason=Reason.REPLACED,
                detail=_REPLACED,
            )
            self.decisions.append(fact)


def refusal_of(pool: Pool | None, name: PoolName) -> DulyError | None:
    """Why a pool would not take a job."""
    if pool is None:
        return UnknownPool(name)
    return PoolDraining(name) if pool.mode is PoolMode.DRAINING else None


def _emptied(items: list[T]) -> list[T]:
    taken = items[:]
    items.clear()
    return taken
