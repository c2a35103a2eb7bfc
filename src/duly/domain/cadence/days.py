"""Which days a cron expression names, as bit masks over blocks of the calendar."""

from calendar import monthrange
from datetime import date

from duly.domain.cadence.instants import FIRST_DAY, LAST_DAY

NEVER = 10_000_000  # a day far beyond the year 9999

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_BLOCK_BITS = 9
_BLOCK_DAYS = 1 << _BLOCK_BITS
_BLOCK_MASK = (1 << _BLOCK_DAYS) - 1
_BLOCKS_KEPT = 128  # 180 years; an expression asked about more of history starts over
_ALL_DATES = (1 << 31) - 1
_ALL_MONTHS = ((1 << 12) - 1) << 1
_ALL_WEEKDAYS = (1 << 7) - 1
_WEEKS = 0b1_0000001_0000001_0000001_0000001


class Days:
    """The day, month and weekday fields, joined by the rule of Debian's cron.

    `dates` has bit 0 for the first of the month, `months` bit 1 for January, `weekdays` bit 0 for Sunday;
    `nths` holds (weekday, nth) pairs and `lasts` the weekdays whose last occurrence in the month counts.
    """

    __slots__ = (
        "_blocks",
        "_both",
        "_dates",
        "_last_date",
        "_last_workday",
        "_lasts",
        "_months",
        "_nths",
        "_shapes",
        "_weekdays",
        "every",
    )

    def __init__(
        self,
        *,
        dates: int,
        last_date: bool,
        last_workday: bool,
        months: int,
        weekdays: int,
        nths: tuple[tuple[int, int], ...],
        lasts: tuple[int, ...],
        both: bool,
    ) -> None:
        self._dates = dates
        self._last_date = last_date
        self._last_workday = last_workday
        self._months = months
        self._weekdays = weekdays
        self._nths = nths
        self._lasts = lasts
        self._both = both
        full = (dates == _ALL_DATES, weekdays == _ALL_WEEKDAYS)
        self.every = months == _ALL_MONTHS and (all(full) if both else any(full))
        self._shapes: dict[tuple[int, int], int] = {}
        self._blocks: dict[int, int] = {}

    def on_or_after(self, day: int) -> int:
        """The first named day at or after this one, as days since 1970; NEVER beyond the year 9999."""
        if self.every:
            return day
        day = max(day, FIRST_DAY)
        block = day >> _BLOCK_BITS
        mask = self._blocks.get(block)
        if mask is None:
            mask = self._fill(block)
        rest = mask >> (day & (_BLOCK_DAYS - 1))
        if rest:
            return day + (rest & -rest).bit_length() - 1
        return self._in_later_blocks(block + 1)

    def on_or_before(self, day: int) -> int | None:
        """The last named day at or before this one; None before the year 1."""
        if self.every:
            return day
        if day < FIRST_DAY:
            return None
        day = min(day, LAST_DAY)
        block = day >> _BLOCK_BITS
        mask = self._block(block) & ((2 << (day & (_BLOCK_DAYS - 1))) - 1)
        while not mask:
            block -= 1
            if block < FIRST_DAY >> _BLOCK_BITS:
                return None
            mask = self._block(block)
        return (block << _BLOCK_BITS) + mask.bit_length() - 1

    def count(self, start: int, end: int) -> int:
        """How many days are named from `start` on, before `end`."""
        if self.every:
            return max(end - start, 0)
        start, end = max(start, FIRST_DAY), min(end, LAST_DAY + 1)
        total = 0
        while start < end:
            block = start >> _BLOCK_BITS
            border = min((block + 1) << _BLOCK_BITS, end)
            rest = self._block(block) >> (start & (_BLOCK_DAYS - 1))
            total += (rest & ((1 << (border - start)) - 1)).bit_count()
            start = border
        return total

    def ever(self) -> bool:
        """Whether any day at all is named: every month length on every weekday comes up in 400 years."""
        return any(
            self._in_month(first_weekday, length)
            for month in range(1, 13)
            if self._months >> month & 1
            for length in _lengths(month)
            for first_weekday in range(7)
        )

    def _in_later_blocks(self, block: int) -> int:
        while block << _BLOCK_BITS <= LAST_DAY:
            mask = self._blocks.get(block)
            if mask is None:
                mask = self._fill(block)
            if mask:
                return (block << _BLOCK_BITS) + (mask & -mask).bit_length() - 1
            block += 1
        return NEVER

    def _block(self, block: int) -> int:
        mask = self._blocks.get(block)
        return self._fill(block) if mask is None else mask

    def _fill(self, block: int) -> int:
        if len(self._blocks) >= _BLOCKS_KEPT:
            self._blocks.clear()
        first = block << _BLOCK_BITS
        start = date.fromordinal(max(first, FIRST_DAY) + _EPOCH_ORDINAL)
        year, month = start.year, start.month
        day = start.replace(day=1).toordinal() - _EPOCH_ORDINAL
        mask = 0
        while day < first + _BLOCK_DAYS and year <= 9999:
            length = monthrange(year, month)[1]
            if self._months >> month & 1:
                days = self._in_month((day + 4) % 7, length)
                mask |= days << (day - first) if day >= first else days >> (first - day)
            day += length
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        mask &= _BLOCK_MASK
        self._blocks[block] = mask
        return mask

    def _in_month(self, first_weekday: int, length: int) -> int:
        """The named days of any month of this shape; there are only 28 shapes."""
        shape = (first_weekday, length)
        mask = self._shapes.get(shape)
        if mask is None:
            by_date = self._by_date(first_weekday, length)
            by_weekday = self._by_weekday(first_weekday, length)
            mask = by_date & by_weekday if self._both else by_date | by_weekday
            self._shapes[shape] = mask
        return mask

    def _by_date(self, first_weekday: int, length: int) -> int:
        mask = self._dates & ((1 << length) - 1)
        if self._last_date:
            mask |= 1 << (length - 1)
        if self._last_workday:
            last_weekday = (first_weekday + length - 1) % 7
            back = {0: 2, 6: 1}.get(last_weekday, 0)
            mask |= 1 << (length - 1 - back)
        return mask

    def _by_weekday(self, first_weekday: int, length: int) -> int:
        week = (self._weekdays >> first_weekday | self._weekdays << (7 - first_weekday)) & _ALL_WEEKDAYS
        mask = week * _WEEKS
        for weekday, nth in self._nths:
            mask |= 1 << ((weekday - first_weekday) % 7 + 7 * (nth - 1))
        for weekday in self._lasts:
            first = (weekday - first_weekday) % 7
            mask |= 1 << (first + (length - 1 - first) // 7 * 7)
        return mask & ((1 << length) - 1)


def _lengths(month: int) -> tuple[int, ...]:
    return (28, 29) if month == 2 else (monthrange(2001, month)[1],)
