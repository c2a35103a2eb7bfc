"""When a cron expression fires in a zone: the law of time, computed over UTC seconds.

A wall clock is a row of spans with one offset each. Inside a span, UTC and wall time run in step, so the next
fire is the next wall reading the expression names. Only at a span's border does the rule matter:

- A set time in a gap fires once, at the gap's end; in a fold once, at the first pass.
- A wildcard (minute or hour starts with `*`) follows the wall clock: skipped in a gap, both passes of a fold.
- A shift of more than 3 hours is a correction of the date. The clock is simply followed, by both kinds.

Counting and looking back go span by span as well: whole days by their number, times of day by the bits set.
"""

from collections.abc import Iterator

from duly.domain.cadence.dialect import Expression
from duly.domain.cadence.instants import DAY, FIRST_SECOND, LAST_SECOND
from duly.domain.cadence.wall import Span, Zone

_TWO_DAYS = 2 * DAY
_NOWHERE = Span(0, 0, 0, 0, 0)


class Fires:
    """The evaluator of one expression in one zone; keeps only the span it last looked at."""

    __slots__ = ("_closing", "_daily", "_days", "_minutes", "_opening", "_seconds", "_span", "fixed", "zone")

    def __init__(self, expression: Expression, zone: Zone) -> None:
        self.zone = zone
        self.fixed = expression.fixed
        self._days = expression.days
        self._daily = expression.days.every
        self._minutes = expression.minutes
        self._seconds = expression.seconds
        self._opening = _lowest(expression.minutes) * 60 + _lowest(expression.seconds)
        self._closing = _highest(expression.minutes) * 60 + _highest(expression.seconds)
        self._span = _NOWHERE

    def next_second(self, after: int) -> int | None:
        """The first fire later than `after`."""
        if after < FIRST_SECOND:  # an aware datetime of the year 1 may lie before it in UTC
            after = FIRST_SECOND - 1
        span = self._span  # read once: another thread may be looking elsewhere
        start, end, offset, _, floor = span
        if not start <= after < end:
            self._span = span = self.zone.span_at(min(after, LAST_SECOND))
            start, end, offset, _, floor = span
        # The span is the one that holds `after`: a gap ending a second later still has its fire to make up.
        wall = after + 1 + offset
        if wall < floor and self.fixed:
            wall = floor
        wall = self.wall_on_or_after(wall)
        found = wall - offset
        if found >= end:
            return self._beyond(span, wall)
        return found if found <= LAST_SECOND and wall <= LAST_SECOND else None

    def seconds_after(self, after: int) -> Iterator[int]:
        """Every fire later than `after`; inside a span there is no border to think of."""
        while (found := self.next_second(after)) is not None:
            yield found
            after = found
            span = self.zone.span_at(found)
            offset = span.offset
            end = min(span.end + offset, LAST_SECOND + 1, LAST_SECOND + 1 + offset)
            wall = self.wall_on_or_after(found + 1 + offset)
            while wall < end:
                after = wall - offset
                yield after
                wall = self.wall_on_or_after(wall + 1)

    def last_second(self, through: int) -> int | None:
        """The last fire at or before `through`."""
        through = min(through, LAST_SECOND)
        while through >= FIRST_SECOND:
            span = self.zone.span_at(through)
            found = self._last_in(span, through)
            if found is not None:
                return found
            # A fire and the reading it stands for are less than two days apart, so spans between are passed over.
            earlier = span.start - 1
            wall = self._wall_on_or_before(earlier + _TWO_DAYS)
            if wall is None:
                return None
            through = min(earlier, wall + _TWO_DAYS)
        return None

    def count(self, after: int, through: int) -> int:
        """How many fires are later than `after` and not later than `through`."""
        start, end = max(after + 1, FIRST_SECOND), min(through, LAST_SECOND) + 1
        total = 0
        while start < end:
            span = self.zone.span_at(start)
            border = min(span.end, end)
            total += self._count_in(span, start, border)
            start = border
        return total

    def wall_on_or_after(self, wall: int) -> int:
        """The first wall reading at or after this one that the expression names, zones apart."""
        if self._seconds != 1:
            return self._wall_with_seconds(wall)
        minutes = -(-wall // 60)
        day = minutes // 1440
        on = day if self._daily else self._days.on_or_after(day)
        if on == day:
            rest = self._minutes >> minutes % 1440
            if rest & 1:
                return minutes * 60
            if rest:
                return (minutes + (rest & -rest).bit_length() - 1) * 60
            on = self._days.on_or_after(day + 1)
        return on * DAY + self._opening

    def _wall_with_seconds(self, wall: int) -> int:
        minutes, second = divmod(wall, 60)
        day, minute = divmod(minutes, 1440)
        on = self._days.on_or_after(day)
        if on == day:
            rest = self._minutes >> minute
            later = self._seconds >> second
            if rest & 1 and later:
                return wall + _lowest(later)
            rest = rest >> 1 << 1
            if rest:
                return (minutes + _lowest(rest)) * 60 + _lowest(self._seconds)
            on = self._days.on_or_after(day + 1)
        return on * DAY + self._opening

    def _beyond(self, span: Span, wall: int) -> int | None:
        """Carries a wall reading that its own span does not reach across the borders that follow."""
        border, near = span.end, span.end + _TWO_DAYS
        while wall - span.offset >= span.end:
            if span.end > LAST_SECOND:
                return None
            span = self.zone.span_at(border)
            resumed = span.start + span.offset
            if self.fixed and not span.correction:
                if wall < resumed:
                    return span.start
            elif wall < resumed or span.shift < 0:
                wall = self.wall_on_or_after(resumed)
            border = span.end
            if border > near:
                # No clock was ever set by more than a day, so borders far from both the search's start and
                # the reading found can neither repeat nor swallow it: pass over them.
                border = max(border, min(wall - span.offset - _TWO_DAYS, LAST_SECOND))
        found = wall - span.offset
        return found if found <= LAST_SECOND and wall <= LAST_SECOND else None

    def _last_in(self, span: Span, through: int) -> int | None:
        """The last fire of a span, at or before a second of it."""
        wall = self._wall_on_or_before(min(through + span.offset, LAST_SECOND))
        if wall is not None and wall >= self._least_wall(span, max(span.start, FIRST_SECOND)):
            return wall - span.offset
        return span.start if self._makes_up(span) else None

    def _count_in(self, span: Span, start: int, end: int) -> int:
        """The fires from `start` on, before `end`, both of one span."""
        low, high = self._least_wall(span, start), min(end + span.offset, LAST_SECOND + 1)
        shown = self._count_walls(low, high) if low < high else 0
        return shown + (start == span.start and self._makes_up(span))

    def _least_wall(self, span: Span, start: int) -> int:
        """The first reading from a second of the span on that may fire: a set time not before it is shown anew."""
        wall = start + span.offset
        return max(wall, span.floor) if self.fixed else wall

    def _makes_up(self, span: Span) -> bool:
        """Whether a set time that the gap before the span skipped fires at its start, where none is planned anyway."""
        if not self.fixed or span.shift <= 0 or span.correction:
            return False
        resumed = span.start + span.offset
        return self.wall_on_or_after(resumed - span.shift) < resumed and self.wall_on_or_after(resumed) != resumed

    def _wall_on_or_before(self, wall: int) -> int | None:
        """The last wall reading at or before this one that the expression names, zones apart."""
        minutes, second = divmod(wall, 60)
        day, minute = divmod(minutes, 1440)
        on = self._days.on_or_before(day)
        if on == day:
            shown = self._minutes & ((2 << minute) - 1)
            seconds = self._seconds & ((2 << second) - 1)
            if shown >> minute and seconds:
                return minutes * 60 + _highest(seconds)
            shown &= (1 << minute) - 1
            if shown:
                return (day * 1440 + _highest(shown)) * 60 + _highest(self._seconds)
            on = self._days.on_or_before(day - 1)
        return None if on is None else on * DAY + self._closing

    def _count_walls(self, low: int, high: int) -> int:
        """The readings in [low, high) that the expression names, zones apart."""
        first, last = low // DAY, high // DAY
        whole_days = self._days.count(first, last) * self._minutes.bit_count() * self._seconds.bit_count()
        return whole_days + self._count_since_midnight(high) - self._count_since_midnight(low)

    def _count_since_midnight(self, wall: int) -> int:
        """The named readings of a wall reading's day that come before it."""
        day, rest = divmod(wall, DAY)
        if not self._days.count(day, day + 1):
            return 0
        minute, second = divmod(rest, 60)
        passed = (self._minutes & ((1 << minute) - 1)).bit_count() * self._seconds.bit_count()
        return passed + (self._minutes >> minute & 1) * (self._seconds & ((1 << second) - 1)).bit_count()


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _highest(mask: int) -> int:
    return mask.bit_length() - 1
