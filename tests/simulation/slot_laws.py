"""What must hold whenever slots are decided: in order, each once, for the right reason, and only beside whom it may."""

from collections.abc import Sequence

from duly.domain.instants import SECOND
from duly.domain.policies import CatchUp, Overlap
from tests.simulation.laws import require
from tests.simulation.lives import Decided, Life, Row, Silence, Term

_ONE_FOR_ALL = (Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.REPLACE)


def check_decided(life: Life, decided: Decided, quiet: Sequence[Silence]) -> None:
    """Before the life knows of it. `quiet` are the outages that were on record, and the one that ended just then."""
    _check_order(life, decided)
    if decided.anew():
        judging = _Judging(life, decided, quiet)
        judging.check_reasons()
        judging.check_company()
    _check_arrears(life, decided)


def _check_order(life: Life, decided: Decided) -> None:
    anew = decided.anew()
    name = life.id
    require(len(anew) == len(set(anew)), f"{name}: a slot of {anew} met two fates at once")
    for slot in anew:
        require(slot not in life.fates, f"{name}: slot {slot} is decided again")
        require(slot not in life.owed, f"{name}: slot {slot} is owed, and decided again")
        require(slot > life.through, f"{name}: slot {slot} opens, though all up to {life.through} is decided")
    if anew:
        planned = life.planned(life.through, anew[-1])
        require(anew == planned, f"{name}: {_difference(anew, planned)} after {life.through}")


def _difference(found: list[int], planned: list[int]) -> str:
    lost, extra = sorted(set(planned) - set(found)), sorted(set(found) - set(planned))
    return f"lost {lost[:5]}, not planned {extra[:5]}"


class _Judging:
    def __init__(self, life: Life, decided: Decided, quiet: Sequence[Silence]) -> None:
        self._life = life
        self._term = life.now
        self._decided = decided
        self._quiet = quiet
        self._anew = decided.anew()

    def check_reasons(self) -> None:
        for slot, row in self._decided.rows.items():
            self._check_row(slot, row)
        for slot, reason in self._decided.gaps.items():
            self._check_gap(slot, reason)
        for slot in self._decided.owed:
            self._require(self._may_be_missed(slot), f"slot {slot} is owed, though somebody kept time")
            self._require(
                self._catches_up and not self._is_one_for_all, f"slot {slot} is owed under {self._term.policies}"
            )

    def _check_row(self, slot: int, row: Row) -> None:
        jitter = self._term.policies.jitter_ms * 1_000
        self._require(row.revision == self._term.number, f"slot {slot} is of revision {row.revision}")
        self._require(abs(row.fire_at - slot * SECOND) <= jitter, f"slot {slot} fires at {row.fire_at}")
        self._require(row.opened_at >= min(slot * SECOND, row.fire_at), f"slot {slot} was opened too early")
        if self._is_quiet(row.fire_at, row.fire_at):
            self._require(
                self._catches_up and self._is_one_for_all,
                f"slot {slot} was missed, and yet opened, under {self._term.policies}",
            )
            later = self._next(slot)
            self._require(
                later is None or not self._must_be_missed(later),
                f"slot {slot} was opened for all that was missed, but {later} was missed too",
            )

    def _check_gap(self, slot: int, reason: str) -> None:
        self._require(self._may_be_missed(slot), f"slot {slot} is missed ({reason}), though somebody kept time")
        if reason == "outage":
            self._require(not self._catches_up or self._decided.is_deleted, f"slot {slot} is not caught up")
        elif reason == "superseded":
            self._require(self._catches_up and self._is_one_for_all, f"slot {slot} is superseded")
            self._require(any(later > slot for later in self._decided.rows), f"slot {slot} is superseded by none")
        else:
            self._require(self._catches_up and not self._is_one_for_all, f"slot {slot} is beyond a cap")
            cap = self._term.policies.catch_up_cap
            before = [owed for owed in self._decided.owed.values() if owed.last < slot]
            self._require(
                self._decided.is_deleted or (bool(before) and before[-1].slots == cap),
                f"slot {slot} is beyond a cap of {cap} that is not reached",
            )

    def check_company(self) -> None:
        opened = [row for row in self._decided.rows.values() if row.status == "pending" and row.reason is None]
        together = {row.id for row in self._decided.rows.values()}
        for row in opened:
            others = [other for other in self._decided.in_flight if other.id != row.id and not other.is_gone]
            match self._term.policies.overlap:
                case Overlap.SKIP:
                    self._require(not others, f"slot {row.slot} was opened beside {others}")
                case Overlap.QUEUE_ONE:
                    waiting = [other for other in others if other.status == "pending"]
                    self._require(not waiting, f"slot {row.slot} was opened beside {waiting}, who wait already")
                case Overlap.REPLACE:
                    unasked = [other for other in others if not other.asked]
                    self._require(not unasked, f"slot {row.slot} took the place of {unasked}, who were not told")
                case _:
                    pass
        for row in self._decided.rows.values():
            self._check_turned_away(row, together)

    def _check_turned_away(self, row: Row, together: set[str]) -> None:
        """For whom a slot was closed: somebody in flight, or decided about together with it."""
        others = [other for other in self._decided.in_flight if other.id != row.id]
        named = str(row.detail).removeprefix("coalesced into ").split()[0].rstrip(",")
        overlap = self._term.policies.overlap
        if row.reason == "overlap":
            self._require(overlap is Overlap.SKIP, f"slot {row.slot} is skipped under {overlap}")
            self._require(bool(others) or named in together, f"slot {row.slot} is skipped beside nobody")
        elif row.reason == "coalesced":
            waiting = [other for other in others if other.status == "pending" or other.is_gone]
            self._require(overlap is Overlap.QUEUE_ONE, f"slot {row.slot} is coalesced under {overlap}")
            self._require(bool(waiting) or named in together, f"slot {row.slot} is coalesced into nobody")
        elif row.reason == "launch":
            self._require(self._decided.is_a_pool_draining, f"slot {row.slot} failed, though every pool takes jobs")
        elif row.reason == "replaced":
            later = any(other.slot > row.slot for other in self._decided.rows.values())
            self._require(overlap is Overlap.REPLACE and later, f"slot {row.slot} is replaced by nobody")

    # When it fires, as far as jitter lets one know

    def _may_be_missed(self, slot: int) -> bool:
        return any(silence.touches(*self._fires(slot)) for silence in self._quiet)

    def _must_be_missed(self, slot: int) -> bool:
        return self._is_quiet(*self._fires(slot))

    def _is_quiet(self, first: int, last: int) -> bool:
        return any(silence.holds(first, last) for silence in self._quiet)

    def _fires(self, slot: int) -> tuple[int, int]:
        jitter = self._term.policies.jitter_ms * 1_000
        return slot * SECOND - jitter, slot * SECOND + jitter

    def _next(self, slot: int) -> int | None:
        return next((later for later in self._anew if later > slot), None)

    @property
    def _catches_up(self) -> bool:
        return self._term.policies.catch_up is not CatchUp.NONE

    @property
    def _is_one_for_all(self) -> bool:
        return self._term.policies.overlap in _ONE_FOR_ALL

    def _require(self, condition: object, law: str) -> None:
        require(condition, f"{self._life.id} at {self._decided.at}: {law}")


def _check_arrears(life: Life, decided: Decided) -> None:
    """What was owed is opened oldest first, as it was planned, or forgiven with its schedule."""
    for slot, row in decided.caught_up.items():
        require(row.revision == life.owed[slot], f"{life.id}: slot {slot} is caught up as of revision {row.revision}")
        older = [other for other in life.owed if other < slot]
        require(
            all(other in decided.caught_up for other in older),
            f"{life.id}: slot {slot} is caught up before {older[:5]}",
        )
    for slot, reason in decided.forgiven.items():
        require(
            reason == "outage" and decided.is_deleted, f"{life.id}: slot {slot} was owed, and is now a gap ({reason})"
        )


def check_span(life: Life, *, first: int, last: int, slots: int, revision: int) -> None:
    """A gap, or what is owed, names the slots that one revision planned."""
    term: Term = life.term(revision)
    ends = life.term(revision + 1).after if revision < len(life.terms) else last
    planned = term.timetable.slots(max(first - 1, term.after), min(last, ends))
    require(term.state == "active", f"{life.id}: revision {revision}, which planned nothing, has a gap at {first}")
    require(len(planned) == slots, f"{life.id}: {slots} slots are recorded from {first} to {last}, not {len(planned)}")
    require(planned and (planned[0], planned[-1]) == (first, last), f"{life.id}: a gap begins or ends between slots")
