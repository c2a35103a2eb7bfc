"""The simulation's own account: it looks at the ledger after every transaction and holds it against what it knows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import apsw

from tests.simulation.laws import require
from tests.simulation.lives import Decided, Gap, InFlight, Life, Owed, Row, Silence, Wish, silences
from tests.simulation.slot_laws import check_decided, check_span

_NEW_ROWS = (
    "SELECT rowid, id, schedule_id, revision, kind, own_key, scheduled_for / 1000000, fire_at, opened_at, status,"
    " reason, detail, job_id FROM schedule_runs WHERE rowid > ? ORDER BY rowid"
)
_GAPS = (
    "SELECT schedule_id, first_slot / 1000000, last_slot / 1000000, slots, reason, revision, recorded_at"
    " FROM schedule_gaps ORDER BY schedule_id, first_slot"
)
_OWED = (
    "SELECT schedule_id, first_slot / 1000000, next_slot / 1000000, last_slot / 1000000, slots, due_at, revision"
    " FROM schedule_arrears ORDER BY schedule_id, first_slot"
)
_IN_FLIGHT = (
    "SELECT r.id, r.status, j.cancel_reason IS NOT NULL FROM schedule_runs r LEFT JOIN jobs j ON j.ledger_run = r.id"
    " WHERE r.schedule_id = ? AND (r.status IN ('pending', 'running') OR (r.completed_at = ? AND r.job_id IS NOT NULL))"
)
_SCHEDULES = "SELECT id, opened_through / 1000000, next_run_at / 1000000 FROM schedules ORDER BY id"
_DRAINING = "SELECT 1 FROM pools WHERE mode = 'draining'"
_REVISIONS = (
    "SELECT number, effective_from / 1000000, state FROM schedule_revisions WHERE schedule_id = ? AND number > ?"
)


@dataclass(frozen=True, slots=True)
class Extra:
    """Runs that were asked for by hand, and the key they were given."""

    schedule: str
    own_key: str
    slots: frozenset[int]


@dataclass(slots=True)
class Record:
    """`wish` is what the caller has asked for and not been answered yet."""

    database: apsw.Connection
    outage_after: int
    note: Callable[[str], None]
    elapsed: Callable[[], int]
    lives: dict[str, Life] = field(default_factory=dict)
    wish: Wish | Extra | None = None
    spans: list[tuple[int, int]] = field(default_factory=list)
    _last_row: int = 0

    def saw(self, called: set[str]) -> None:
        """A transaction has done its work, by calling these methods of its stores."""
        if called & {"add", "add_gaps", "owe"}:
            self._see_slots()
        if called & {"add", "revise"}:
            self._see_revisions()
        if called & {"add", "advance", "revise"}:
            self._see_schedules()
        if called & {"keep_alive"}:
            self.spans = list(self.database.execute("SELECT started_at, alive_at FROM coverage ORDER BY started_at"))

    def life(self, name: str) -> Life:
        return self.lives.setdefault(name, Life(name))

    # Slots

    def _see_slots(self) -> None:
        rows = [Row(*values) for values in self.database.execute(_NEW_ROWS, (self._last_row,))]
        gaps = _by_schedule(self.database.execute(_GAPS), Gap._make)
        owed = _by_schedule(self.database.execute(_OWED), Owed._make)
        self._last_row = rows[-1].place if rows else self._last_row
        for row in rows:
            if row.kind != "slot":
                self._see_extra(row)
        owing = [name for name, life in self.lives.items() if life.owed]
        for name in sorted({*(row.schedule for row in rows), *gaps, *owed, *owing}):
            mine = [row for row in rows if row.schedule == name and row.kind == "slot"]
            self._see_slots_of(self.life(name), mine, gaps.get(name, []), owed.get(name, []))

    def _see_slots_of(self, life: Life, rows: list[Row], gaps: list[Gap], owed: list[Owed]) -> None:
        decided = self._decided(life, rows, gaps, owed)
        if decided is None:
            return
        decided.in_flight = [
            InFlight(run, status, bool(asked))
            for run, status, asked in self.database.execute(_IN_FLIGHT, (life.id, decided.at))
        ]
        decided.is_a_pool_draining = bool(list(self.database.execute(_DRAINING)))
        wish = self.wish
        decided.is_deleted = isinstance(wish, Wish) and (wish.schedule, wish.state) == (life.id, "deleted")
        check_decided(life, decided, self._quiet_at(decided.at))
        self._remember(life, decided)
        self.note(f"{life.id} at {decided.at}: {_words(decided)}")
        life.gaps = {gap.first: gap for gap in gaps}
        for gap in gaps:
            check_span(life, first=gap.first, last=gap.last, slots=gap.slots, revision=gap.revision)
        for one in owed:
            check_span(life, first=one.next, last=one.last, slots=one.slots, revision=one.revision)

    def _decided(self, life: Life, rows: list[Row], gaps: list[Gap], owed: list[Owed]) -> Decided | None:
        """What is new since the last look; None if nothing is."""
        fresh = [gap for gap in gaps if life.gaps.get(gap.first) != gap]
        owed_now = {
            slot: one for one in owed for slot in life.term(one.revision).timetable.slots(one.next - 1, one.last)
        }
        instants = [row.opened_at for row in rows] + [gap.recorded_at for gap in fresh]
        instants += [one.due_at for slot, one in owed_now.items() if slot not in life.owed]
        settled = [slot for slot in life.owed if slot not in owed_now]
        if not instants and not settled:
            return None
        require(
            len(set(instants)) == 1, f"{life.id}: one transaction at {sorted(set(instants))}, settling {settled[:5]}"
        )
        decided = Decided(at=instants[0])
        for row in rows:
            found = decided.caught_up if row.slot in life.owed else decided.rows
            require(row.slot not in found, f"{life.id}: slot {row.slot} has two rows")
            found[row.slot] = row
        for gap in fresh:
            earlier = life.gaps.get(gap.first)
            begin = gap.first - 1 if earlier is None else earlier.last
            for slot in life.term(gap.revision).timetable.slots(begin, gap.last):
                (decided.forgiven if slot in life.owed else decided.gaps)[slot] = gap.reason
        decided.owed = {slot: one for slot, one in owed_now.items() if slot not in life.owed}
        for slot in life.owed:
            held = (slot in owed_now) + (slot in decided.caught_up) + (slot in decided.forgiven)
            require(held == 1, f"{life.id}: slot {slot} was owed, and is now accounted for {held} times")
        return decided

    def _quiet_at(self, instant: int) -> list[Silence]:
        """The outages on record, and the one that ends with whoever looks now."""
        spans = self.spans
        if not spans or instant - spans[-1][1] > self.outage_after:
            spans = [*spans, (instant, instant)]
        return silences(spans, longer_than=self.outage_after)

    def _remember(self, life: Life, decided: Decided) -> None:
        for slot in (*decided.rows, *decided.caught_up):
            life.fates[slot] = "row"
        for slot in (*decided.gaps, *decided.forgiven):
            life.fates[slot] = "gap"
        for slot in (*decided.caught_up, *decided.forgiven):
            del life.owed[slot]
        life.caught_up |= set(decided.caught_up)
        life.owed |= {slot: one.revision for slot, one in decided.owed.items()}
        life.through = max([life.through, *decided.anew()])

    # What was asked for

    def _see_revisions(self) -> None:
        names = {*self.lives, *([self.wish.schedule] if self.wish else [])}
        for name in sorted(names):
            life = self.life(name)
            found = list(self.database.execute(_REVISIONS, (name, len(life.terms))))
            if not found:
                continue
            wish, self.wish = self.wish, None
            require(
                len(found) == 1 and isinstance(wish, Wish) and wish.schedule == name,
                f"{name} came to {found}, which nobody asked for",
            )
            assert isinstance(wish, Wish)
            term = life.change(wish)
            life.changed_at = self.elapsed()
            self.note(
                f"{name} comes to {term.number} {term.state} after {term.after}: {term.timetable} {term.policies}"
            )
            require(
                found[0] == (term.number, term.after, term.state),
                f"{name} came to {found[0]}, not to {(term.number, term.after, term.state)}",
            )
            undecided = life.undecided(term.after)
            require(not undecided, f"{name} came to {term.number}, and {undecided[:5]} fell between revisions")

    def _see_schedules(self) -> None:
        """Each knows what is decided, and which slot comes next."""
        for name, through, following in self.database.execute(_SCHEDULES):
            life = self.life(name)
            require(through == life.through, f"{name} is open through {through}, not {life.through}")
            known = following is None or following < life.now.timetable.season.end
            expected = life.next_slot()
            require((following if known else None) == expected, f"{name}: the next slot is {following}, not {expected}")
            require(life.now.state == "active" or following is None, f"{name} is not active, but plans {following}")

    def _see_extra(self, row: Row) -> None:
        """Rows of runs by hand come all in the one transaction that was asked for them."""
        asked = self.wish
        require(
            isinstance(asked, Extra)
            and (row.schedule, row.own_key) == (asked.schedule, asked.own_key)
            and row.slot in asked.slots,
            f"{row.id} was asked for by nobody",
        )
        known = self.life(row.schedule).extra.setdefault(row.own_key, set())
        require(row.slot not in known, f"{row.schedule}: {row.slot} ran twice for {row.own_key}")
        known.add(row.slot)


def _by_schedule(rows: Iterable[tuple[Any, ...]], make: Callable[[Iterable[Any]], Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for schedule, *values in rows:
        found.setdefault(schedule, []).append(make(values))
    return found


def _words(decided: Decided) -> str:
    parts = {
        "opens": [f"{slot} {row.status} {row.reason or ''}".strip() for slot, row in decided.rows.items()],
        "catches up": [str(slot) for slot in decided.caught_up],
        "misses": [f"{slot} {reason}" for slot, reason in (decided.gaps | decided.forgiven).items()],
        "owes": [str(slot) for slot in decided.owed],
    }
    return "; ".join(f"{what} {', '.join(slots)}" for what, slots in parts.items() if slots)
