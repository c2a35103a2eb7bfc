"""Knows who was really there: coverage is held against the lives of the processes, not against what they say."""

from dataclasses import dataclass, field

from tests.simulation.laws import require
from tests.simulation.lives import silences


@dataclass(slots=True)
class Watchman:
    """Looks twice in a `beat`. `seen` are instants at which somebody had been there for a while, and must have said so.

    What happens between two looks, or in the beat after somebody died, it cannot know.
    """

    beat: int
    outage_after: int
    seen: list[int] = field(default_factory=list)
    _known: set[tuple[int, int]] = field(default_factory=set)
    _latest: int | None = None
    _there_since: int | None = None
    _looked_at: int = 0
    _returned: list[tuple[int, int]] = field(default_factory=list)

    def look(self, *, now: int, elapsed: int, is_anybody_there: bool, spans: list[tuple[int, int]]) -> None:
        """`now` is what the clock on the wall shows, `elapsed` how much time has really passed."""
        self._check_outages(spans)
        if not is_anybody_there:
            self._there_since = None
            return
        if self._there_since is None or elapsed - self._looked_at > self.beat:  # it slept itself
            self._there_since = elapsed
        self._looked_at = elapsed
        if self.is_steady:
            self._check_returns(spans)
            self.seen.append(now)
            alive_at = max(end for _, end in spans)
            require(alive_at > now - 3 * self.beat, f"somebody keeps time at {now}, but coverage ends at {alive_at}")
        if self._latest is not None and self._is_absence(self._latest, now):
            self._returned.append((self._latest, now))
        self.touch(now)

    @property
    def is_steady(self) -> bool:
        """Somebody has been there for a while, and nobody has touched the clock."""
        return self._there_since is not None and self._looked_at - self._there_since > 3 * self.beat

    def touch(self, instant: int) -> None:
        """Somebody was there at an instant, of which it may have told much later."""
        self._latest = instant if self._latest is None else max(self._latest, instant)
        for left, returned in [one for one in self._returned if one[0] < instant < one[1]]:
            self._returned.remove((left, returned))
            parts = [(left, instant), (instant, returned)]
            self._returned += [part for part in parts if self._is_absence(*part)]

    def _is_absence(self, left: int, returned: int) -> bool:
        return returned - left > self.outage_after + 3 * self.beat

    def clock_was_set(self) -> None:
        """What the clock on the wall showed before says little about what coverage must show."""
        self._there_since = None
        self._returned.clear()

    def _check_outages(self, spans: list[tuple[int, int]]) -> None:
        """Nobody was there in what is called an outage, from a beat after it began."""
        for outage in silences(spans, longer_than=self.outage_after):
            if (outage.start, outage.end) in self._known:
                continue
            self._known.add((outage.start, outage.end))
            there = [seen for seen in self.seen if outage.start + 3 * self.beat < seen < outage.end - 3 * self.beat]
            require(not there, f"somebody kept time at {there[:3]}, in what is called an outage: {outage}")

    def _check_returns(self, spans: list[tuple[int, int]]) -> None:
        """A real absence is on record once somebody has been back for a while."""
        while self._returned:
            left, returned = self._returned.pop()
            found = [
                outage
                for outage in silences(spans, longer_than=self.outage_after)
                if outage.start < left + 3 * self.beat and outage.end > returned - 3 * self.beat
            ]
            require(found, f"nobody kept time from {left} to {returned}, but that is no outage: {spans[-3:]}")
