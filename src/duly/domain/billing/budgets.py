"""Budgets: what a schedule or an account may hold and charge within a window of time."""

from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum

from duly.domain.amounts import Amount, written_amount
from duly.domain.cadence import zone
from duly.domain.errors import InvalidInput, NotFound, Refused
from duly.domain.ids import BudgetId, Owner
from duly.domain.instants import SECOND, Instant

_DAY = 86_400
# 1970-01-01 was a Thursday: three days after a Monday.
_DAYS_FROM_MONDAY = 3
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
# No wall clock is a day ahead of UTC or behind it.
_FURTHEST_OFFSET = 26 * 3600

EVER = Instant(0)


class Window(StrEnum):
    DAY = "day"
    WEEK = "week"  # from Monday on
    MONTH = "month"
    TOTAL = "total"

    def start(self, now: Instant, timezone: str) -> Instant:
        """When the window that `now` lies in began: windows follow each other without a gap, and never go back.

        Each begins when the zone's wall clock first shows its first midnight, or a later time if it skips that.
        """
        if self is Window.TOTAL:
            return EVER
        second = now // SECOND
        day = (second + zone(timezone).span_at(second).offset) // _DAY
        # A clock set back at midnight shows yesterday again; the window of today has begun all the same.
        while _first_second_of(day + 1, timezone) <= second:
            day += 1
        return Instant(_first_second_of(self._first_day(day), timezone) * SECOND)

    def _first_day(self, day: int) -> int:
        match self:
            case Window.WEEK:
                return day - (day + _DAYS_FROM_MONDAY) % 7
            case Window.MONTH:
                return day - date.fromordinal(day + _EPOCH_ORDINAL).day + 1
            case _:
                return day


def _first_second_of(day: int, timezone: str) -> int:
    """The first UTC second at which the wall clock shows that day's midnight or later."""
    midnight, where = day * _DAY, zone(timezone)
    span = where.span_at(midnight - _FURTHEST_OFFSET)
    while (second := max(span.start, midnight - span.offset)) >= span.end:
        span = where.span_at(span.end)
    return second


class BudgetScope(StrEnum):
    ACCOUNT = "account"
    SCHEDULE = "schedule"


class OnExceeded(StrEnum):
    """What becomes of a run that would go beyond it."""

    SKIP = "skip"
    PAUSE = "pause"  # its schedule, too
    ASK = "ask"  # a person


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """`used` is what holds made since `window_start` reserve, and what those that ended have spent."""

    id: BudgetId
    owner: Owner
    scope: BudgetScope
    scope_id: str
    window: Window
    timezone: str = "UTC"
    limit: Amount
    on_exceeded: OnExceeded = OnExceeded.SKIP
    window_start: Instant = EVER
    used: int = 0
    created_at: Instant

    def at(self, now: Instant) -> "Budget":
        """In the window of `now`; a clock that was set back reopens none."""
        start = self.window.start(now, self.timezone)
        return self if start <= self.window_start else replace(self, window_start=start, used=0)

    def holding(self, amount: int, *, approved: bool = False) -> "Budget":
        """With that much more in use; what costs nothing is never too much, nor what was asked for and approved."""
        is_allowed = approved and self.on_exceeded is OnExceeded.ASK
        if amount > 0 and self.used + amount > self.limit and not is_allowed:
            raise OverBudget(self, asked=amount)
        return replace(self, used=self.used + amount)


def chosen(kind: type[StrEnum], value: object, *, field: str) -> str:
    """One of the words that `kind` has."""
    if value not in list(kind):
        raise InvalidInput(field, f"{ascii(value)[:40]} is none", fix=f"use one of {', '.join(kind)}")
    return str(value)


class OverBudget(Refused):
    """A budget would be exceeded; `policy` says what should become of the run."""

    code = "over_budget"

    def __init__(self, budget: Budget, *, asked: int) -> None:
        period = "in all" if budget.window is Window.TOTAL else f"a {budget.window}"
        super().__init__(
            f"budget {budget.id}: {budget.scope} {budget.scope_id} may spend {written_amount(budget.limit)} {period};"
            f" {written_amount(budget.used)} is used, and {written_amount(asked)} was asked for"
        )
        self.budget_id = budget.id
        self.policy = budget.on_exceeded
        self.asked = asked
        self.used = budget.used
        self.limit = budget.limit


class UnknownBudget(NotFound):
    code = "unknown_budget"

    def __init__(self, budget_id: str) -> None:
        super().__init__(f"there is no budget {budget_id!r}")
        self.budget_id = budget_id
