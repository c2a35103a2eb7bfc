"""Claims jobs, enters their handlers, reports how they ended."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from duly.application.jobs import Jobs
from duly.application.logs import Logs
from duly.application.pools import Pools
from duly.application.sessions import Sessions
from duly.application.telling import NOBODY
from duly.domain.errors import Unavailable
from duly.domain.ids import JobId, PoolName, Token
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import Ending, Suspended
from duly.domain.sessions import LEASE, Beat, ClaimedJob, Exchange, Report, Rescue, Session, SessionLost, Wanted
from duly.ports.telemetry import Telemetry
from duly.worker.handlers import Handler, enter
from duly.worker.heart import Heart
from duly.worker.job_runs import JobRun
from duly.worker.logbook import Logbook
from duly.worker.pulse import LoopPulse, Pulse

GRACE = Micros(30 * SECOND)
PATIENCE = Micros(5 * SECOND)
_LONGEST_REST = Micros(30 * SECOND)
_RETRY_AFTER = Micros(SECOND // 5)
_AT_ONCE = Instant(0)


@dataclass(slots=True)
class _Life:
    """What a worker has under one session; when the session is lost, all of it is void."""

    session: Session
    loop: asyncio.AbstractEventLoop
    token: int = 0
    running: dict[JobId, JobRun] = field(default_factory=dict)
    held: list[ClaimedJob] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    suspended: list[tuple[ClaimedJob, Suspended]] = field(default_factory=list)
    lost: bool = False


class Worker:
    """`pools` says how many jobs of each pool it runs at once; `prefetch` how many more it may hold ready.

    Without `prefetch`, the pools' own settings count. When it is stopped, what runs may go on for `grace`; a handler
    that is asked to stop has `patience` to do so, after which its executor is lost until it ends.
    """

    def __init__(
        self,
        *,
        jobs: Jobs,
        sessions: Sessions,
        handlers: Mapping[str, Handler],
        pools: Mapping[PoolName, int],
        name: str,
        prefetch: Mapping[PoolName, int] | None = None,
        lease: Micros = LEASE,
        grace: Micros = GRACE,
        patience: Micros = PATIENCE,
        pulse: Callable[[], Pulse] | None = None,
        telemetry: Telemetry = NOBODY,
    ) -> None:
        self._jobs = jobs
        self._sessions = sessions
        self._storage = sessions.storage
        self._clock = sessions.storage.clock
        self._handlers = handlers
        self._pools = dict(pools)
        # Work elsewhere, and what executions tell, is none of its business: each look is a claim.
        self._concerns = frozenset({"due", "cancel", "*", *(f"pool:{name}" for name in pools)})
        self._given_prefetch = prefetch
        self._prefetch = dict(prefetch or {})
        self._name = name
        self._lease = lease
        self._grace = grace
        self._patience = patience
        self._telemetry = telemetry
        self._new_pulse = pulse or (lambda: LoopPulse(sessions))
        self._stopping = False
        self._is_hurried = asyncio.Event()
        self._nudge = asyncio.Event()
        self._next_due_at: Instant | None = _AT_ONCE
        self._clock_is_stale = False
        self._pulse: Pulse | None = None
        self._lost: Counter[PoolName] = Counter()
        self._logbook = Logbook(Logs(self._storage))

    def stop(self) -> None:
        """Claims nothing new, gives back what it holds, ends what runs within the grace; then `run` returns."""
        self._stopping = True
        self._nudge.set()

    def hurry(self) -> None:
        """Once it was told to stop: its grace ends now."""
        self._is_hurried.set()

    @property
    def stopped(self) -> bool:
        return self._stopping

    @property
    def lost(self) -> Mapping[PoolName, int]:
        """Executors that handlers keep which were asked to stop and did not, whichever session they ran under."""
        return +self._lost

    async def run(self) -> None:
        self._logbook.open()
        listener = self._storage.wakeups.listen()
        listening = asyncio.create_task(self._listen(listener.wait))
        try:
            while not self._stopping:
                await self._live()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            listener.close()
            self._logbook.close()

    async def _listen(self, wait: Callable[[Micros], Awaitable[frozenset[str]]]) -> None:
        while True:
            topics = await wait(_LONGEST_REST)
            if topics & {"due", "*"}:
                self._next_due_at = _AT_ONCE
            # Not for "*": on SQLite every beat is a change to the other processes, which would then beat in turn.
            # A lost hint to cancel waits for the next beat.
            if "cancel" in topics and self._pulse is not None:
                self._pulse.hurry()
            if topics & self._concerns:
                self._nudge.set()

    async def _live(self) -> None:
        """One session's life, from opening it to losing or closing it."""
        try:
            session = await self._sessions.open(
                name=self._name,
                capacity=sum(self._pools.values()) or 1,
                lease=self._lease,
                kinds=list(self._handlers),
            )
        except Unavailable:
            await self._clock.sleep(_RETRY_AFTER)
            return
        life = _Life(session, asyncio.get_running_loop())
        await self._read_prefetch()
        self._pulse = self._new_pulse()
        try:
            await self._pulse.start(lambda sessions: self._heart(sessions, life))
            await self._work(life)
            await self._wind_up(life)
        except SessionLost:
            life.lost = True
            self._telemetry.session_lost(life.session.id, running=len(life.running))
        except Unavailable:  # its heart found no store to beat in: the next session will have one
            await self._clock.sleep(_RETRY_AFTER)
        finally:
            await self._pulse.stop()
            # Nothing that runs on under a lost session can be recorded.
            await self._end_runs(life)

    async def _read_prefetch(self) -> None:
        """What the pools' owners opted in to, unless this worker was told otherwise."""
        if self._given_prefetch is None:
            with suppress(Unavailable):
                self._prefetch = {pool.name: pool.prefetch for pool in await Pools(self._storage).all()}

    def _heart(self, sessions: Sessions, life: _Life) -> Heart:
        """Its callbacks may come from a thread, so they only ever schedule."""
        loop = life.loop

        def beaten(beat: Beat) -> None:
            self._clock_is_stale = True
            self._due_by(beat.next_due_at)
            for job_id in beat.cancelled:
                if run := life.running.get(job_id):
                    run.stop()
            if beat.pools_with_work or beat.cancelled:
                self._nudge.set()

        def lost() -> None:
            life.lost = True
            for run in life.running.values():  # at once: the worker itself may be waiting for a store that hangs
                run.stop()
            self._nudge.set()

        def rescued(rescues: Sequence[Rescue]) -> None:
            _schedule(loop, lambda: self._telemetry.rescued(rescues))

        return Heart(
            sessions,
            life.session,
            on_beat=lambda beat: _schedule(loop, lambda: beaten(beat)),
            on_lost=lambda: _schedule(loop, lost),
            on_rescue=rescued,
        )

    async def _work(self, life: _Life) -> None:
        while not (self._stopping or life.lost):
            self._nudge.clear()
            await self._agree()
            await self._stage()
            await self._give_back_stuck(life)
            await self._suspend(life)
            starting, wanted = self._appetite(life)
            if life.reports or starting or wanted:
                await self._exchange(life, starting, wanted)
            if not (life.reports or life.suspended):
                await self._rest()
        if life.lost:
            raise SessionLost(life.session.id)

    async def _agree(self) -> None:
        """The heart has a clock of its own; this one is compared as often."""
        if self._clock_is_stale:
            with suppress(Unavailable):
                await self._clock.agree()
            self._clock_is_stale = False

    async def _stage(self) -> None:
        if self._next_due_at is not None and self._next_due_at <= self._clock.now():
            self._next_due_at = None
            try:
                self._due_by(await self._jobs.stage())
            except Unavailable:
                self._next_due_at = _AT_ONCE
                await self._clock.sleep(_RETRY_AFTER)

    def _due_by(self, at: Instant | None) -> None:
        """A hint that came while this was looked up is newer: it stands."""
        if at is not None and (self._next_due_at is None or at < self._next_due_at):
            self._next_due_at = at

    async def _give_back_stuck(self, life: _Life) -> None:
        """Held jobs of a pool whose executors are all lost had better wait where others can take them."""
        stuck = {pool for pool in self._pools if not self._has_executors(pool)}
        if held := [job for job in life.held if job.pool in stuck] if stuck else []:
            with suppress(Unavailable):
                await self._sessions.give_back(life.session.id, held)
                life.held = [job for job in life.held if job.pool not in stuck]

    async def _suspend(self, life: _Life) -> None:
        """Before anything else is claimed: until the store knows of it, their executors count as busy."""
        until = self._clock.lease_now() + life.session.lease
        while life.suspended and not life.lost and self._clock.lease_now() < until:
            job, waiting = life.suspended[0]
            try:
                await self._sessions.suspend(life.session.id, job, waiting.execution)
                life.suspended.pop(0)
            except Unavailable:
                await self._clock.sleep(_RETRY_AFTER)
        if life.suspended:
            raise SessionLost(life.session.id)

    def _has_executors(self, pool: PoolName) -> bool:
        return self._pools[pool] > self._lost[pool]

    def _appetite(self, life: _Life) -> tuple[list[ClaimedJob], dict[PoolName, Wanted]]:
        """Held jobs that an executor is free for, and what to claim besides: never more than can run or be held."""
        free = Counter(self._pools)
        free.subtract(run.job.pool for run in life.running.values())
        free.subtract(self._lost)
        starting = []
        for job in life.held:
            if free[job.pool] > 0:
                free[job.pool] -= 1
                starting.append(job)
        holding = Counter(job.pool for job in life.held) - Counter(job.pool for job in starting)
        wanted = {
            pool: Wanted(max(free[pool], 0), max(self._prefetch.get(pool, 0) - holding[pool], 0))
            for pool in self._pools
            if self._has_executors(pool)
            if free[pool] > 0 or self._prefetch.get(pool, 0) > 2 * holding[pool]
        }
        return starting, wanted

    async def _exchange(self, life: _Life, starting: list[ClaimedJob], wanted: Mapping[PoolName, Wanted]) -> None:
        life.token += 1
        reports, life.reports = life.reports, []
        if reports and not self._logbook.is_empty:
            await self._logbook.flush()  # whoever sees a job's end sees its last words
        exchange = await self._answered(life, reports, starting, wanted)
        # By token, too: a claim that was taken back may have come to us again.
        going = {(job.id, job.token) for job in starting}
        life.held = [job for job in life.held if (job.id, job.token) not in going] + list(exchange.held)
        self._tell(exchange, reports)
        for job in exchange.started:
            self._enter(life, job)
        if going - {(job.id, job.token) for job in exchange.started}:
            self._nudge.set()  # one had to be parked, or was taken back: its executor is free for the next

    def _tell(self, exchange: Exchange, reports: Sequence[Report]) -> None:
        """Reports that came too late ended nothing."""
        if exchange.stale:
            stale = set(exchange.stale)
            reports = [report for report in reports if report.job.id not in stale]
        if exchange.started or reports:
            self._telemetry.exchanged(exchange.started, reports)

    async def _answered(
        self,
        life: _Life,
        reports: list[Report],
        starting: list[ClaimedJob],
        wanted: Mapping[PoolName, Wanted],
    ) -> Exchange:
        """Repeats an exchange until the store answers: what an unheard answer granted is found, not lost."""
        again = False
        # A heart with a store of its own would keep a session for ever that can report nothing.
        until = self._clock.lease_now() + life.session.lease
        while not life.lost and self._clock.lease_now() < until:
            try:
                return await self._sessions.exchange(
                    life.session.id,
                    token=Token(life.token),
                    reports=reports,
                    starting=starting,
                    wanted=wanted,
                    again=again,
                )
            except Unavailable:
                again = True
                await self._clock.sleep(_RETRY_AFTER)
        raise SessionLost(life.session.id)

    def _enter(self, life: _Life, job: ClaimedJob) -> None:
        begun_at = life.loop.time()
        entered = enter(self._handlers, job)
        if isinstance(entered, Ending):
            life.reports.append(Report(job, entered, ran_for=_since(begun_at, life.loop)))
            return
        life.running[job.id] = JobRun(
            job, entered, patience=self._patience, on_end=partial(self._ended, life), on_gone=self._gone
        )

    def _ended(self, life: _Life, run: JobRun, ending: Ending | Suspended) -> None:
        del life.running[run.job.id]
        if isinstance(ending, Suspended):
            life.suspended.append((run.job, ending))
            self._nudge.set()
            return
        life.reports.append(Report(run.job, ending, ran_for=_since(run.begun_at, life.loop)))
        if run.is_given_up:
            self._lost[run.job.pool] += 1
        self._nudge.set()

    def _gone(self, run: JobRun) -> None:
        self._lost[run.job.pool] -= 1
        self._nudge.set()

    async def _rest(self) -> None:
        """Until something happens, or the next job is due."""
        wait = int(_LONGEST_REST)
        if self._next_due_at is not None:
            wait = min(wait, max(self._next_due_at - self._clock.now(), 0))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait / SECOND):
                await self._nudge.wait()

    async def _wind_up(self, life: _Life) -> None:
        """Gives back what never started, waits for what runs, then stops it; reports all of it."""
        held, life.held = life.held, []
        if held:
            with suppress(Unavailable):  # then they return to the queue when the lease runs out
                await self._sessions.give_back(life.session.id, held)
        if life.running:
            await self._wait_for_runs(life)
            await self._end_runs(life)
        await self._suspend(life)
        if life.reports:
            await self._exchange(life, [], {})
        await self._logbook.flush()
        with suppress(Unavailable):
            await self._sessions.close(life.session.id)

    async def _wait_for_runs(self, life: _Life) -> None:
        """For as long as the grace lasts."""
        ends = asyncio.gather(*(run.task for run in life.running.values()), return_exceptions=True)
        hurried = asyncio.ensure_future(self._is_hurried.wait())
        either: set[asyncio.Future[Any]] = {ends, hurried}
        await asyncio.wait(either, timeout=self._grace / SECOND, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()

    async def _end_runs(self, life: _Life) -> None:
        """A handler that will not stop is left behind: it must not keep the others."""
        runs = list(life.running.values())
        for run in runs:
            run.stop()
        if runs:
            await asyncio.wait([run.task for run in runs], timeout=self._patience / SECOND)
        for run in runs:
            run.give_up()


def _since(begun_at: float, loop: asyncio.AbstractEventLoop) -> Micros:
    return Micros(int((loop.time() - begun_at) * SECOND))


def _schedule(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback)
