"""When a cron expression fires in a zone: the law of time, computed over UTC seconds.

A wall clock is a row of spans with one offset each. Inside a span, UTC and wall time run in step, so the next
fire is the next wall reading the expression names. Only at a span's border does the rule matter:

- A set time in a gap fires once, at the gap's end; in a fold once, at the first pass.
- A wildcard (minute or hour starts with `*`) follows the wall clock: skipped in a gap, both passes of a fold.
- A shift of more than 3 hours is a correction of the date. The clock is simply followed, by both kinds.
"""

from collections.abc import Iterator

from duly.domain.cadence.dialect import Expression
from duly.domain.cadence.instants import DAY, FIRST_SECOND, LAST_SECOND
from duly.domain.cadence.wall import Span, Zone

_TWO_DAYS = 2 * DAY
_NOWHERE = Span(0, 0, 0, 0, 0)


class Fires:
    """The evaluator of one expression in one zone; keeps only the span it last looked at."""

    __slots__ = ("_daily", "_days", "_minutes", "_opening", "_seconds", "_span", "fixed", "zone")

    def __init__(self, expression: Expression, zone: Zone) -> None:
        self.zone = zone
        self.fixed = expression.fixed
        self._days = expression.days
        self._daily = expression.days.every
        self._minutes = expression.minutes
        self._seconds = expression.seconds
        self._opening = _lowest(expression.minutes) * 60 + _lowest(expression.seconds)
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


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
