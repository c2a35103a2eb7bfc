"""A machine with a store, workers, a caller and bad luck, all of it decided by one seed.

The queue, the worker and the storage are the real ones; only time, chance and the way to the store are simulated.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any

from duly.application.sessions import Sessions
from duly.application.tickets import Tickets
from duly.bootstrap import Queue
from duly.domain.errors import DulyError
from duly.domain.ids import JobId, JobKey, Lane, PoolName, SessionId, TicketId, Token
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import COMPLETED, Ending, JobStatus, NewJob
from duly.domain.pools import Pool
from duly.domain.retries import RetryPolicy
from duly.domain.sessions import ClaimedJob, Report, Session
from duly.settings import Settings
from duly.worker.handlers import DoNotRetry
from duly.worker.worker import Worker
from tests.simulation.faults import FaultyStorage, Process
from tests.simulation.laws import Entry, Journal, LawBroken, check_every_commit, check_in_the_end
from tests.simulation.machine import Machine, Mutate

LEASE = Micros(6 * SECOND)
STORM_SECONDS = 30
LIMITS = {"default": 1, "graphs": 2, "flows": 4, "webhooks": 32, "ollama": 1}
WORKERS = 3

_HELD_CLAIMS = f"SELECT {', '.join(ClaimedJob._fields)}, session FROM jobs WHERE state = 'claimed'"

_UNDONE = "SELECT 1 FROM jobs UNION ALL SELECT 1 FROM arrivals UNION ALL SELECT 1 FROM tickets"


class World(Machine):
    def __init__(self, seed: int, *, mutate: Mutate | None = None) -> None:
        super().__init__(Random(seed), mutate=mutate)
        self.journal = Journal()
        self.workers: dict[str, tuple[Process, Worker]] = {}
        self._ids: list[JobId] = []
        self._held: set[tuple[Any, ...]] = set()

    async def _live(self) -> None:
        await self._limit_pools()
        for number in range(WORKERS):
            self._start_worker(f"worker {number}")
        caller = Process("caller")
        calling = caller.spawn(self._call(caller))
        await self._storm()
        self._heal()
        await asyncio.gather(calling, return_exceptions=True)
        await self._until_idle()

    async def _judge(self) -> None:
        check_in_the_end(self.database, self.journal)

    async def _limit_pools(self) -> None:
        queue = Queue.on(self.storage, self.dice, Settings())
        for name, slots in LIMITS.items():
            ageing_ms = self.random.choice([None, 1_000]) if name == "flows" else None
            await queue.pools.define(Pool(name=PoolName(name), slots=slots, ageing_ms=ageing_ms))

    def _check(self) -> None:
        self._held |= set(self.database.execute(_HELD_CLAIMS))
        try:
            check_every_commit(self.database, limits=LIMITS)
        except LawBroken as broken:
            self.break_law(broken)

    def _queue_of(self, process: Process) -> Queue:
        storage = FaultyStorage(
            self.storage,
            process,
            weather=self.weather,
            random=self.random,
            trace=self.note,
            after_commit=self._check,
        )
        return Queue.on(storage, self.dice, Settings())

    # Workers

    def _start_worker(self, name: str) -> None:
        process = Process(name)
        queue = self._queue_of(process)
        worker = Worker(
            jobs=queue.jobs,
            sessions=queue.sessions,
            handlers=self._handlers(process),
            pools={PoolName(pool): self.random.randint(1, 3) for pool in LIMITS},
            prefetch={PoolName("webhooks"): self.random.choice([0, 3]), PoolName("flows"): 3},
            name=name,
            lease=LEASE,
            grace=Micros(5 * SECOND),
        )
        self.workers[name] = (process, worker)
        process.spawn(self._observed(worker))

    async def _observed(self, worker: Worker) -> None:
        try:
            await worker.run()
        except Exception as error:
            self.break_law(LawBroken(f"a worker fell over: {error!r}"))
            raise

    def _handlers(self, process: Process) -> Mapping[str, Callable[[ClaimedJob], object]]:
        def plain(job: ClaimedJob) -> object:
            self._leave(process, self._enter(process, job))
            return self._answer()

        async def slow(job: ClaimedJob) -> object:
            entry = self._enter(process, job)
            await self.clock.sleep(Micros(self.random.choice([1_000, 100_000, SECOND, 4 * SECOND, 15 * SECOND])))
            answer = self._answer()
            self._leave(process, entry)
            return answer

        return {"plain": plain, "slow": slow}

    def _enter(self, process: Process, job: ClaimedJob) -> Entry:
        self.note(f"{process.name} enters {job.id}")
        entry = Entry(
            process=process.name,
            job=job.id,
            chain=job.chain,
            lane=job.lane,
            pool=job.pool,
            token=job.token,
            entered_at=self.clock.elapsed(),
        )
        self.journal.entries.append(entry)
        return entry

    def _leave(self, process: Process, entry: Entry) -> None:
        if process.alive:
            entry.left_at = self.clock.elapsed()

    def _answer(self) -> object:
        match self.random.randrange(10):
            case 0:
                raise ValueError("bad luck")
            case 1:
                raise DoNotRetry("no use")
            case 2:
                return Ending(status=JobStatus.SKIPPED, error="not today")
            case 3:
                return {"answer": 42}
            case _:
                return None

    # The caller

    async def _call(self, process: Process) -> None:
        queue = self._queue_of(process)
        tickets = Tickets(queue.storage, self.dice)
        session = await self._session(queue)
        while self.clock.elapsed() < STORM_SECONDS * SECOND:
            await self.clock.sleep(Micros(self.random.randrange(1, SECOND)))
            with suppress(DulyError):
                match self.random.randrange(14):
                    case 0:
                        await self._put_many(queue)
                    case 1:
                        await queue.jobs.cancel(self._some_job(), reason="changed my mind")
                    case 2:
                        await queue.order.before(self._some_job(), self._some_job())
                    case 3:
                        await queue.order.to_front(self._some_job())
                    case 4:
                        await queue.order.reprioritise(self._some_job(), self.random.randint(-2, 2))
                    case 5:
                        await queue.sessions.revoke(self._some_job(), reason="replaced")
                    case 6:
                        pool = PoolName(self.random.choice(list(LIMITS)))
                        await self.random.choice([queue.pools.pause, queue.pools.drain, queue.pools.open])(pool)
                    case 7:
                        pool = PoolName(self.random.choice(["default", "graphs"]))
                        ticket = await tickets.request(pool, session=session.id, wait=Micros(3 * SECOND))
                        if self.random.random() < 0.7:
                            process.spawn(self._release_later(tickets, ticket.id))
                    case 8:
                        await queue.order.swap(self._some_job(), self._some_job())
                    case _:
                        await self._put(queue)

    async def _session(self, queue: Queue) -> Session:
        while True:
            with suppress(DulyError):
                return await queue.sessions.open(name="caller", lease=LEASE)

    async def _put(self, queue: Queue) -> None:
        put = await queue.jobs.put(self._new_job())
        self._promise(put.job_id)

    async def _put_many(self, queue: Queue) -> None:
        """Mixed, or a crowd for one pool, more than there are executors for."""
        crowd = self.random.random() < 0.5
        news = [self._new_job(crowd=crowd) for _ in range(self.random.randint(1, 8))]
        for put in await queue.jobs.put_many(news):
            self._promise(put.job_id)

    def _promise(self, job_id: JobId) -> None:
        self.note(f"promised {job_id}")
        self.journal.promised[job_id] = self.clock.elapsed()
        self._ids.append(job_id)

    def _some_job(self) -> JobId:
        return self.random.choice(self._ids[-12:]) if self._ids else JobId("job_none")

    async def _release_later(self, tickets: Tickets, ticket_id: TicketId) -> None:
        await self.clock.sleep(Micros(self.random.randrange(4 * SECOND)))
        with suppress(DulyError):
            await tickets.take(ticket_id)
            await tickets.release(ticket_id)

    def _new_job(self, *, crowd: bool = False) -> NewJob:
        draw = self.random
        if crowd:
            return NewJob(kind="slow", pool=PoolName("flows"))
        delay = draw.choice([None, None, None, 0, 2 * SECOND, 8 * SECOND])
        return NewJob(
            kind=draw.choice(["plain", "slow", "slow"]),
            params={"n": draw.randrange(100)},
            key=JobKey(f"key {draw.randrange(6)}") if draw.random() < 0.3 else None,
            lane=Lane(f"lane {draw.randrange(4)}") if draw.random() < 0.6 else None,
            pool=PoolName(draw.choice(list(LIMITS))),
            resources=(PoolName("ollama"),) if draw.random() < 0.2 else (),
            priority=draw.choice([0, 0, 0, 1, -1]),
            run_at=None if delay is None else Instant(self.clock.now() + delay),
            retry=RetryPolicy(max_attempts=draw.randint(1, 4), backoff_ms=draw.choice([0, 500, 3_000])),
            timeout_ms=draw.choice([None, 2_000]),
        )

    # Bad luck, and its end

    async def _storm(self) -> None:
        while self.clock.elapsed() < STORM_SECONDS * SECOND and not self.broken:
            await self.clock.sleep(Micros(self.random.randrange(1, 4 * SECOND)))
            self._restart_the_dead()
            match self.random.randrange(12):
                case 0:
                    self._kill(self.random.choice(list(self.workers)))
                case 1:
                    self.clock.set_off_by(self.random.choice([-60, 60, -5, 5, 0]) * SECOND)
                    self.note("the clock is set")
                case 2:
                    self.clock.sleep_machine(self.random.choice([1, 20]) * SECOND)
                    self.note("the machine slept")
                case 3:
                    self._reboot()
                case 4:
                    self.workers[self.random.choice(list(self.workers))][1].stop()
            await self._deliver_late_reports()

    async def _deliver_late_reports(self) -> None:
        """Packets of dead processes come out of the network, long after others took over their claims."""
        alive = {session for (session,) in self.database.execute("SELECT id FROM sessions")}
        running = {job for (job,) in self.database.execute("SELECT id FROM jobs WHERE state = 'running'")}
        sessions = Sessions(self.storage, self.dice)
        for *row, session in sorted(self._held, key=lambda claim: claim[0]):
            if row[0] in running and session not in alive:
                report = Report(ClaimedJob._make(row), COMPLETED)
                await sessions.exchange(SessionId(session), token=Token(0), reports=[report], wanted={})
                self._check()

    def _kill(self, name: str) -> None:
        self.note(f"{name} is killed")
        self.journal.kills += 1
        self.workers[name][0].kill()

    def _reboot(self) -> None:
        for name in self.workers:
            self._kill(name)
        self.clock.reboot()

    def _restart_the_dead(self) -> None:
        for name, (process, worker) in list(self.workers.items()):
            if not process.alive or worker.stopped:
                self._start_worker(name)

    async def _until_idle(self) -> None:
        """Liveness: without faults, all work comes to an end."""
        queue = Queue.on(self.storage, self.dice, Settings())
        for pool in LIMITS:
            await queue.pools.open(PoolName(pool))
        for _ in range(600):
            self._restart_the_dead()
            if self.broken or not list(self.database.execute(_UNDONE)):
                break
            await self.clock.sleep(Micros(SECOND))
        for _, worker in self.workers.values():
            worker.stop()
        await self.clock.sleep(Micros(10 * SECOND))

    def _kill_everyone(self) -> None:
        for process, _ in self.workers.values():
            process.alive = False
