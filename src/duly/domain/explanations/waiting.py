"""Why a live job has not started, or what it is at: from its row, its pool, its lane and the sessions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from duly.domain.explanations.explanation import lasting
from duly.domain.explanations.facts import MOST_NAMED, Fact, counted, several
from duly.domain.ids import JobId, SessionId
from duly.domain.instants import Instant, written
from duly.domain.jobs import Job, JobState
from duly.domain.pools import Pool, PoolMode
from duly.domain.reviews import Review


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSession:
    """A worker process, as its last heartbeat left it."""

    id: SessionId
    name: str
    seen_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Who has the places of a pool: the `jobs` that may be named, first started first, and how many `calls`."""

    pool: Pool
    jobs: Sequence[Job] = ()
    calls: int = 0

    @property
    def others(self) -> int:
        return max(self.pool.used - len(self.jobs[:MOST_NAMED]) - self.calls, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What stands between a live job and its start, as it is recorded.

    `place` counts from 1 among what is ready; of what is `ahead` only those are named that may be. `head` is the
    lane's, if it is another job: None with `lane_ahead` set is one that may not be named.
    """

    now: Instant
    pool: Holders | None = None
    resource: Holders | None = None
    place: int | None = None
    ahead: Sequence[JobId] = ()
    head: Job | None = None
    lane_ahead: int | None = None
    share: str | None = None
    share_used: int = 0
    warning: str | None = None
    session: SeenSession | None = None
    reviews: Sequence[Review] = ()
    called_back_by: Instant | None = None


def waiting_in_words(job: Job, wait: Wait) -> list[Fact]:
    """The next thing to do comes last."""
    facts = [*_state(job, wait)]
    if job.cancel_reason is not None:
        facts.append(Fact("asked_to_stop", f"It was asked to stop: {job.cancel_reason}."))
    if not job.is_locked and wait.warning is not None:
        said = wait.warning.rstrip(".?")
        facts.append(Fact("no_worker", f"{said[:1].upper()}{said[1:]}{'?' if wait.warning.endswith('?') else '.'}"))
    return [*facts, *_next(job, wait)]


def _state(job: Job, wait: Wait) -> Iterator[Fact]:
    match job.state:
        case JobState.SCHEDULED:
            yield _due(job, wait, "delayed")
        case JobState.BACKOFF if wait.reviews:
            for review in wait.reviews:
                yield Fact("waits_for_review", review.waiting_in_words, (review.id,))
        case JobState.BACKOFF if wait.called_back_by is not None:
            until = written(wait.called_back_by)
            yield Fact("waits_for_call_back", f"It waits until {until} for its executor to call back.")
        case JobState.BACKOFF:
            yield _due(job, wait, "retry_due")
        case JobState.WAITING:
            yield from _lane(job, wait)
        case JobState.PARKED:
            yield from _parked(wait)
        case JobState.READY:
            yield from _ready(job, wait)
        case JobState.CLAIMED | JobState.RUNNING:
            yield from _in_hand(job, wait)


def _due(job: Job, wait: Wait, name: str) -> Fact:
    what = f"Attempt {job.attempt} of {job.retry.max_attempts}" if name == "retry_due" else "It"
    if job.run_at > wait.now:
        return Fact(name, f"{what} is due at {written(job.run_at)}, in {lasting(job.run_at - wait.now)}.")
    late = lasting(wait.now - job.run_at)
    return Fact("overdue", f"{what} was due at {written(job.run_at)}, {late} ago, and nobody has made it ready yet.")


def _lane(job: Job, wait: Wait) -> Iterator[Fact]:
    head = "a job of somebody else" if wait.head is None else _job(wait.head)
    about = () if wait.head is None else (wait.head.id,)
    yield Fact("lane_busy", f"Its lane {job.lane!r} is busy: {head} comes first.", about)
    if wait.lane_ahead:
        yield Fact("lane_order", f"{_jobs(wait.lane_ahead)} of the lane, besides, will run before it.")


def _parked(wait: Wait) -> Iterator[Fact]:
    if wait.resource is not None:
        yield from _full(wait.resource, "resource_full", "It also needs a place of the pool")


def _ready(job: Job, wait: Wait) -> Iterator[Fact]:
    if wait.pool is not None:
        pool = wait.pool.pool
        if pool.mode is PoolMode.PAUSED:
            yield Fact("pool_paused", f"Its pool {pool.name!r} is paused, and starts nothing.", (pool.name,))
        elif pool.used >= pool.slots:
            yield from _full(wait.pool, "pool_full", "It needs a place of the pool")
        if pool.tickets:
            calls = counted(pool.tickets, "direct call")
            yield Fact("calls_first", f"{calls} {_wait(pool.tickets)} for a place of it before the queue.")
        if pool.per_owner is not None and wait.share is not None and wait.share_used >= pool.per_owner:
            whose = f"of {wait.share!r}" if wait.share else "of all jobs that have no owner"
            used = f"{wait.share_used} of {pool.per_owner} places are in use"
            yield Fact("share_used_up", f"The share {whose} in that pool is used up: {used}.")
    if wait.place is not None:
        yield _order(job, wait, wait.place)


def _order(job: Job, wait: Wait, place: int) -> Fact:
    if place == 1:
        return Fact("place", f"It is the first in the order of the pool {job.pool!r}.")
    order = f"It is number {place} in the order of the pool {job.pool!r}"
    if not wait.ahead:
        return Fact("place", f"{order}.")
    more = place - 1 - len(wait.ahead)
    names = [*wait.ahead, *([f"{more} more"] if more else [])]
    return Fact("place", f"{order}, behind {several(names)}.", tuple(wait.ahead))


def _full(holders: Holders, name: str, needs: str) -> Iterator[Fact]:
    pool = holders.pool
    if pool.mode is PoolMode.PAUSED:
        yield Fact("resource_paused", f"{needs} {pool.name!r}, which is paused.", (pool.name,))
        return
    taken = f"{needs} {pool.name!r}, of which {pool.used} of {pool.slots} are in use"
    named = [_job(job) for job in holders.jobs[:MOST_NAMED]]
    named += [counted(holders.calls, "direct call")] if holders.calls else []
    named += [counted(holders.others, "other job")] if holders.others else []
    by = f" by {several(named)}" if named else ""
    yield Fact(name, f"{taken}{by}.", (pool.name, *(job.id for job in holders.jobs[:MOST_NAMED])))


def _in_hand(job: Job, wait: Wait) -> Iterator[Fact]:
    attempt = f"attempt {job.attempt} of {job.retry.max_attempts}"
    since = "" if job.started_at is None else f" since {written(job.started_at)}"
    yield Fact(job.state.value, f"It is {job.state}{since} in session {job.session}: {attempt}.", (job.id,))
    if (session := wait.session) is not None:
        said = f"That session is of the worker {session.name!r}, last seen at {written(session.seen_at)}"
        yield Fact("session", f"{said}.", (session.id,))
    if job.timeout_ms is not None and job.started_at is not None and job.state is JobState.RUNNING:
        until = Instant(job.started_at + job.timeout_ms * 1_000)
        yield Fact("time_out", f"Its time is up at {written(until)}.")


def _next(job: Job, wait: Wait) -> Iterator[Fact]:
    if job.state is JobState.BACKOFF and wait.reviews:
        review = wait.reviews[0].id
        yield Fact("next", f"Decide it with `duly review approve {review}`, or reject it.", (review,))
        return
    holders = wait.resource if job.state is JobState.PARKED else wait.pool if job.state is JobState.READY else None
    if holders is not None and holders.pool.mode is PoolMode.PAUSED:
        name = holders.pool.name
        yield Fact("next", f"Let the pool start jobs again with `duly pool set {name} --mode open`.", (name,))
    elif not job.is_locked and wait.warning is not None:
        yield Fact("next", f"Start a worker that has a handler for {job.kind!r}.")


def _job(job: Job) -> str:
    since = "" if job.started_at is None else f" since {written(job.started_at)}"
    return f"{job.id} ({job.kind}, {job.state}{since})"


def _jobs(count: int) -> str:
    return counted(count, "job")


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"
