"""Makes the schedules that a program declares so, and retires those that it no longer declares."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from duly.application.batch import Drawn
from duly.application.schedule_checks import require_target
from duly.application.schedules import ACTIVE, DELETED, Changed, Changes, Schedules, is_over, is_so
from duly.domain.declarations import Declaration, Declared, Reconciled
from duly.domain.errors import InvalidInput
from duly.domain.graph_targets import grant_of
from duly.domain.ids import Owner, ScheduleId
from duly.domain.policies import Policies
from duly.domain.schedules import Revision, Schedule, ScheduleState, new_schedule
from duly.domain.texts import text_of
from duly.ports.storage import Transaction

_TAKEN = "the id is taken by somebody else"


class _Fate(Enum):
    CREATED = auto()
    UPDATED = auto()
    UNCHANGED = auto()
    CONFLICT = auto()


@dataclass(frozen=True, slots=True)
class _Verdict:
    fate: _Fate
    schedule: Schedule | None = None
    why: str = ""
    was_so: bool = False


@dataclass(frozen=True, slots=True)
class Declarations:
    schedules: Schedules

    async def reconcile(
        self, program: str, declared: Sequence[Declared], *, owner: str, dry_run: bool = False
    ) -> Reconciled:
        """In one transaction a schedule, so that whoever was cut goes on next time; a dry run says what would be done.

        What is paused stays paused. What others made, own or declared is a conflict, and left alone.
        """
        mine = _Program(self.schedules, Owner(text_of(owner, field="owner")), text_of(program, field="program"))
        _require_apart(declared)
        found: dict[_Fate, list[ScheduleId]] = {fate: [] for fate in _Fate}
        conflicts: list[tuple[ScheduleId, str]] = []
        restored: list[ScheduleId] = []
        for each in declared:
            verdict = await (mine.judged(each) if dry_run else mine.made_so(each))
            found[verdict.fate].append(ScheduleId(each.id))
            if verdict.was_so:
                restored.append(ScheduleId(each.id))
            if verdict.fate is _Fate.CONFLICT:
                conflicts.append((ScheduleId(each.id), verdict.why))
        retired = await mine.left_over({each.id for each in declared})
        if not dry_run:
            retired = [schedule_id for schedule_id in retired if await mine.retire(schedule_id)]
        return Reconciled(
            created=tuple(found[_Fate.CREATED]),
            updated=tuple(found[_Fate.UPDATED]),
            unchanged=tuple(found[_Fate.UNCHANGED]),
            retired=tuple(retired),
            restored=tuple(restored),
            conflicts=tuple(conflicts),
        )


@dataclass(frozen=True, slots=True)
class _Program:
    schedules: Schedules
    owner: Owner
    name: str

    async def judged(self, each: Declared) -> _Verdict:
        drawn = self.schedules.draw()
        granting = self.schedules.graphs.granting(each.target, drawn.now)

        async def work(tx: Transaction) -> _Verdict:
            known = await granting.known_in(tx, ScheduleId(each.id), self.owner)
            return await self._judge(tx, replace(each, target=known or each.target), drawn, lock=False)

        return await self.schedules.storage.read(work)

    async def made_so(self, each: Declared) -> _Verdict:
        """Whoever took the id meanwhile may be another process of this program, so it is looked at once more."""
        return await self._made_so(each) or await self._made_so(each) or _Verdict(_Fate.CONFLICT, why=_TAKEN)

    async def _made_so(self, each: Declared) -> _Verdict | None:
        """None if somebody took the id meanwhile."""
        drawn = self.schedules.draw()
        granting = self.schedules.graphs.granting(each.target, drawn.now)
        earlier: list[tuple[_Verdict, Changed]] = []

        async def work(tx: Transaction) -> tuple[_Verdict | None, Changed | None]:
            known = await granting.known_in(tx, ScheduleId(each.id), self.owner)
            verdict = await self._judge(tx, replace(each, target=known or each.target), drawn, lock=True)
            for made, changed in earlier:
                if _is_left(verdict.schedule, changed):
                    return made, changed  # run again after a lost answer
            if verdict.fate in (_Fate.CONFLICT, _Fate.UNCHANGED):
                return verdict, None
            meant = known or each.target
            if grant_of(each.target) is not None or grant_of(meant) is None:
                meant = await granting.target_in(tx, ScheduleId(each.id), self.owner) or meant
            changed_now = await self._make_so(tx, replace(each, target=meant), verdict, drawn)
            if changed_now is None:
                return None, None
            earlier[:] = [(verdict, changed_now)]
            return verdict, changed_now

        verdict, changed = await self.schedules.graphs.transact(self.schedules.storage, work)
        if changed is not None:
            self.schedules.told(changed)
        return verdict

    async def _judge(self, tx: Transaction, each: Declared, drawn: Drawn, *, lock: bool) -> _Verdict:
        find = tx.schedules.lock if lock else tx.schedules.get
        schedule = await find(ScheduleId(each.id))
        if schedule is not None and schedule.owner != self.owner:
            return _Verdict(_Fate.CONFLICT, why=_TAKEN)
        is_there = schedule is not None and schedule.state is not ScheduleState.DELETED
        if is_there:
            declaration = await tx.declarations.get(ScheduleId(each.id))
            if declaration != self._declaration(each.id):
                return _Verdict(_Fate.CONFLICT, why=_made_by(declaration))
            if schedule is not None and is_so(schedule, self._changes(each)):
                return _Verdict(_Fate.UNCHANGED, schedule)
        if is_over(each.cadence, drawn.now):
            return _Verdict(_Fate.CONFLICT, why="its cadence has no fire left")
        if not is_there:
            return _Verdict(_Fate.CREATED, schedule)
        revisions = await tx.schedules.revisions(ScheduleId(each.id))
        changes = self._changes(each)
        # One that broke is what it was, and is mended.
        was_so = not _declares(revisions[-1], changes) and any(_declares(one, changes) for one in revisions)
        return _Verdict(_Fate.UPDATED, schedule, was_so=was_so)

    async def _make_so(self, tx: Transaction, each: Declared, verdict: _Verdict, drawn: Drawn) -> Changed | None:
        """None if somebody took the id meanwhile."""
        if verdict.schedule is None:
            new = new_schedule(
                schedule_id=each.id,
                owner=self.owner,
                cadence=each.cadence,
                target=each.target,
                policies=self._policies(each),
                now=drawn.now,
            )
            if not await self.schedules.add_in(tx, new):
                return None
            changed = Changed(new)
        else:
            await require_target(tx, each.target, self.owner)
            state = ACTIVE if verdict.fate is _Fate.CREATED else {}
            changed = await self.schedules.revise_in(tx, verdict.schedule, {**self._changes(each), **state}, drawn)
        await tx.declarations.save(self._declaration(each.id))
        return changed

    def _changes(self, each: Declared) -> Changes:
        return {"cadence": each.cadence, "target": each.target, "policies": self._policies(each)}

    def _policies(self, each: Declared) -> Policies:
        return self.schedules.defaults if each.policies is None else each.policies

    def _declaration(self, schedule_id: str) -> Declaration:
        return Declaration(schedule_id=ScheduleId(schedule_id), owner=self.owner, program=self.name)

    async def left_over(self, declared: set[str]) -> list[ScheduleId]:
        """What the program declared before and declares no longer."""

        async def work(tx: Transaction) -> list[Declaration]:
            return await tx.declarations.of_program(self.owner, self.name)

        return [
            known.schedule_id for known in await self.schedules.storage.read(work) if known.schedule_id not in declared
        ]

    async def retire(self, schedule_id: ScheduleId) -> bool:
        """False if somebody was faster."""
        drawn = self.schedules.draw()
        earlier: list[Changed] = []

        async def work(tx: Transaction) -> Changed | None:
            schedule = await tx.schedules.lock(schedule_id)
            for retired in earlier:
                if _is_left(schedule, retired):
                    return retired  # run again after a lost answer
            if schedule is None or await tx.declarations.get(schedule_id) != self._declaration(schedule_id):
                return None
            earlier[:] = [await self.schedules.revise_in(tx, schedule, DELETED, drawn)]
            return earlier[0]

        changed = await self.schedules.storage.transact(work)
        if changed is not None:
            self.schedules.told(changed)
        return changed is not None


def _declares(revision: Revision, changes: Changes) -> bool:
    return all(getattr(revision, name) == value for name, value in changes.items())


def _is_left(schedule: Schedule | None, changed: Changed) -> bool:
    made = changed.schedule
    return schedule is not None and (schedule.revision, schedule.updated_at) == (made.revision, made.updated_at)


def _made_by(declaration: Declaration | None) -> str:
    return "it was made by hand" if declaration is None else f"it is declared by the program {declaration.program!r}"


def _require_apart(declared: Sequence[Declared]) -> None:
    seen: set[str] = set()
    for each in declared:
        if each.id in seen:
            raise InvalidInput("id", f"{each.id!r} is declared twice", fix="give each schedule an id of its own")
        seen.add(each.id)
