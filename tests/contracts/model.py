"""The queue as plain dicts: one pool, what a reader of the docs would expect, and no SQL."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count

SLOTS = 3
BACKOFF = 2
LOCKED = ("claimed", "running")


@dataclass(frozen=True)
class Entry:
    """A live job; `place` is exact, so that there is always room between two."""

    name: str
    priority: int
    place: Fraction
    run_at: int
    state: str = "ready"
    key: str | None = None
    lane: str | None = None
    attempt: int = 1
    max_attempts: int = 2
    session: int | None = None
    cancelled: bool = False

    @property
    def order(self) -> tuple[int, Fraction]:
        return (-self.priority, self.place)

    @property
    def is_locked(self) -> bool:
        return self.state in LOCKED


class Refusal(Exception):
    """By its stable code."""


class Model:
    def __init__(self) -> None:
        self.now = 0
        self.live: dict[str, Entry] = {}
        self.ended: dict[str, str] = {}
        self.paused = False
        self._places = count(1)
        self._names = count(1)

    # What a caller sees.

    def states(self) -> dict[str, str]:
        return self.ended | {name: job.state for name, job in self.live.items()}

    def upcoming(self) -> list[str]:
        return [job.name for job in self._in_order(self.live.values()) if job.state == "ready"]

    def used(self) -> int:
        return sum(job.is_locked for job in self.live.values())

    def next_due(self) -> int | None:
        return min((job.run_at for job in self.live.values() if job.state in ("scheduled", "backoff")), default=None)

    def having(self, *states: str) -> list[str]:
        return [job.name for job in self._in_order(self.live.values()) if job.state in states]

    # What callers do.

    def put(
        self, *, key: str | None, lane: str | None, priority: int, delay: int, max_attempts: int
    ) -> tuple[str, str]:
        asked = Entry(
            name="",
            priority=priority,
            place=self._last_place(),
            run_at=self.now + delay,
            state="scheduled" if delay else "ready",
            key=key,
            lane=lane,
            max_attempts=max_attempts,
        )
        for standing in self.live.values():
            if key is not None and standing.key == key:
                if standing.is_locked:
                    return standing.name, "left"
                self._store(replace(asked, name=standing.name), leaving=standing.lane)
                return standing.name, "replaced"
        name = f"j{next(self._names)}"
        self._store(replace(asked, name=name))
        return name, "created"

    def cancel(self, name: str) -> bool:
        job = self._known(name)
        if job.is_locked:
            self.live[name] = replace(job, cancelled=True)
            return False
        self._end(job, "CANCELLED")
        return True

    def before(self, name: str, other: str) -> None:
        if name != other:
            job, target = self._movable(name), self._movable(other)
            self._place(job, target.priority, self._place_before(target, job))

    def after(self, name: str, other: str) -> None:
        if name != other:
            job, target = self._movable(name), self._movable(other)
            behind = [j for j in self._beside(target, job) if j.place > target.place]
            place = self._place_before(behind[0], job) if behind else self._last_place()
            self._place(job, target.priority, place)

    def swap(self, name: str, other: str) -> None:
        if name != other:
            job, target = self._movable(name), self._movable(other)
            self._place(job, target.priority, target.place)
            self._place(target, job.priority, job.place)

    def to_front(self, name: str) -> None:
        job = self._movable(name)
        others = [j for j in self._in_order(self.live.values()) if j.name != name and not j.is_locked]
        if others and others[0].order < job.order:
            self._place(job, others[0].priority, self._place_before(others[0], job))

    def reprioritise(self, name: str, priority: int) -> None:
        job = self._movable(name)
        self._place(job, priority, job.place)

    # What workers do.

    def claim(self, session: int, most: int, state: str) -> list[str]:
        room = 0 if self.paused else max(0, SLOTS - self.used())
        names = self.upcoming()[: min(most, room)]
        for name in names:
            self.live[name] = replace(self.live[name], state=state, session=session)
        return names

    def start(self, name: str) -> None:
        self.live[name] = replace(self.live[name], state="running")

    def finish(self, name: str) -> None:
        self._end(self.live[name], "COMPLETED")

    def fail(self, name: str) -> None:
        job = self.live[name]
        if job.cancelled:
            self._end(job, "CANCELLED")
        elif job.attempt >= job.max_attempts:
            self._end(job, "FAILED")
        else:
            self.ended[name] = "FAILED"
            del self.live[name]
            wait = BACKOFF << (job.attempt - 1)
            retry = replace(job, name=f"{name}'", attempt=job.attempt + 1, run_at=self.now + wait)
            self._store(replace(retry, state="backoff", session=None))

    def give_back(self, name: str) -> None:
        job = self.live[name]
        if job.cancelled:
            self._end(job, "CANCELLED")
        else:
            self._store(replace(job, state="ready", session=None))

    def revoke(self, name: str) -> bool:
        job = self.live.get(name)
        if job is None or not job.is_locked:
            return False
        if job.state == "claimed":
            self.give_back(name)
            return False
        self._end(job, "CANCELLED")
        return True

    def lose(self, session: int) -> None:
        """Its worker died, and was rescued."""
        for job in list(self.live.values()):
            if job.session == session:
                (self.fail if job.state == "running" else self.give_back)(job.name)

    def advance(self, seconds: int) -> None:
        self.now += seconds

    def stage(self) -> None:
        for job in list(self.live.values()):
            if job.state in ("scheduled", "backoff") and job.run_at <= self.now:
                self._store(replace(job, state="ready"))

    # The lane law, and order.

    def _store(self, job: Entry, *, leaving: str | None = None) -> None:
        self.live[job.name] = job
        self._settle(job.lane)
        self._settle(leaving)

    def _end(self, job: Entry, status: str) -> None:
        del self.live[job.name]
        self.ended[job.name] = status
        self._settle(job.lane)

    def _settle(self, lane: str | None) -> None:
        """The best job of a lane that is due leads it, unless one is claimed or its chain waits to try again."""
        if lane is None:
            return
        inside = [job for job in self.live.values() if job.lane == lane]
        due = self._in_order(job for job in inside if job.state in ("ready", "waiting"))
        is_taken = any(job.is_locked or job.state == "backoff" for job in inside)
        for index, job in enumerate(due):
            state = "ready" if index == 0 and not is_taken else "waiting"
            self.live[job.name] = replace(job, state=state)

    def _place(self, job: Entry, priority: int, place: Fraction) -> None:
        self._store(replace(self.live[job.name], priority=priority, place=place))

    def _place_before(self, target: Entry, job: Entry) -> Fraction:
        lower = [j.place for j in self._beside(target, job) if j.place < target.place]
        return (lower[-1] + target.place) / 2 if lower else target.place - 1

    def _beside(self, target: Entry, apart_from: Entry) -> list[Entry]:
        jobs = (j for j in self.live.values() if j.priority == target.priority and j.name != apart_from.name)
        return self._in_order(jobs)

    def _last_place(self) -> Fraction:
        return Fraction(next(self._places))

    def _movable(self, name: str) -> Entry:
        job = self._known(name)
        if job.is_locked:
            raise Refusal("job_locked")
        return job

    def _known(self, name: str) -> Entry:
        if name in self.ended and name not in self.live:
            raise Refusal("job_already_finished")
        return self.live[name]

    @staticmethod
    def _in_order(jobs: Iterable[Entry]) -> list[Entry]:
        return sorted(jobs, key=lambda job: job.order)
