"""The front door for Python programs: declare jobs and schedules, put, wait, run."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from duly.app.client import Client, Named, PutOptions
from duly.app.declared import (
    GraphOptions,
    JobOptions,
    Params,
    call_of,
    job_of,
    name_for,
    schedule_of,
    schedule_of_graph,
)
from duly.app.durations import Duration, ms_of
from duly.app.graphs import DeclaredGraph, graph_of
from duly.app.refusals import AlreadyOpen, NotOpen, ScheduleTaken
from duly.app.register import Register
from duly.app.results import Awaited
from duly.app.running import Part, Stop, run_until, running, stopped_by_signals
from duly.app.sync import Sync
from duly.bootstrap import Handler, Queue, Registry, Settings, command, handler_for, settings_of_environment
from duly.domain.declarations import Reconciled
from duly.domain.errors import InvalidInput
from duly.domain.executions import GRAPH_RUN, OnCrash
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import Put
from duly.domain.pools import MOST_SLOTS, Pool
from duly.domain.retries import DAY_MS
from duly.domain.runs import Run
from duly.domain.schedules import Schedule
from duly.domain.texts import text_of, whole_number_of

if TYPE_CHECKING:
    from duly.bootstrap import GraphRuns

F = TypeVar("F", bound=Callable[..., Any])

# Of one pool, by one program: each may be a thread.
_MOST_EXECUTORS = 1_000


class Duly:
    """A program's jobs and schedules, on one database.

    `database` is a path or a `postgresql://` address; without one, and without `settings`, the environment says it.
    The schedules declared here belong to `owner` and are found again by `name`: two programs on one database that
    declare schedules need two names, or each retires what the other declares.
    """

    def __init__(
        self,
        database: str | Path | None = None,
        *,
        settings: Settings | None = None,
        name: str = "app",
        owner: str = "local",
    ) -> None:
        if database is not None and settings is not None:
            raise InvalidInput("database", "the settings name one, too", fix="pass either of them")
        self._database = None if database is None else str(database)
        self._settings = settings
        self.name = text_of(name, field="name", longest=64)
        self.owner = text_of(owner, field="owner")
        self.reconciled: Reconciled | None = None
        self.sync = Sync(self._client_aside)
        self._register = Register()
        self._graph_runs: GraphRuns | None = None
        self._opened: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Stop | None = None

    @property
    def settings(self) -> Settings:
        """Read from the environment each time the app is opened, unless they were given."""
        if self._settings is not None:
            return self._settings
        settings = settings_of_environment()
        return settings if self._database is None else replace(settings, database_url=self._database)

    # Declaring

    @overload
    def job(self, function: F, /) -> F: ...

    @overload
    def job(
        self, /, *, name: str | None = None, isolate: bool = False, **options: Unpack[JobOptions]
    ) -> Callable[[F], F]: ...

    def job(
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        isolate: bool = False,
        **options: Unpack[JobOptions],
    ) -> F | Callable[[F], F]:
        """Declares a function as a job, under its own name unless `name` is given; it stays what it is.

        An async function runs in the worker's event loop, any other in a thread, with `isolate` in a process.
        """

        def declare(function: F) -> F:
            call = call_of(function)
            job = job_of(name or name_for(function), handler_for(function, isolate=isolate), call, options)
            self._register.add(job, schedule_of(job, options), function)
            return function

        return declare if function is None else declare(function)

    def command(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        result: Literal["json"] | None = None,
        artifacts: str | Path | None = None,
        **options: Unpack[JobOptions],
    ) -> str:
        """Declares a program as a job; answers its name, to put it by."""
        handler = command(argv, env=env, cwd=cwd, result=result, artifacts=artifacts)
        job = job_of(name, handler, None, options)
        self._register.add(job, schedule_of(job, options))
        return job.name

    def graph(
        self,
        name: str,
        graph: Any,
        *,
        input: Params | None = None,  # noqa: A002 - what people call it
        model: str | None = None,
        max_cost: str | None = None,
        on_crash: str = OnCrash.RESUME,
        timeout: Duration | None = None,
        **options: Unpack[GraphOptions],
    ) -> str:
        """Declares a graph, as `"module:attr"` or as the object itself; answers its id, `provider:name`.

        With a `schedule` it runs under a grant of its own, at the cost of the owner's account; `max_cost` is held
        before each run. A place is loaded by the execution service alone, never by a worker that asks one elsewhere.
        """
        timeout_ms = None if timeout is None else ms_of(timeout, field="timeout", least=1, most=DAY_MS)
        graph_id, params = graph_of(
            name,
            graph,
            self._register.found_at,
            graph_input=input,
            model=model,
            max_cost=max_cost,
            on_crash=on_crash,
            timeout_ms=timeout_ms,
        )
        schedule = schedule_of_graph(name, params, options)
        declared = DeclaredGraph(id=graph_id, schedule_id=None if schedule is None else schedule.id, params=params)
        self._register.add_graph(declared, schedule)
        return graph_id

    def pool(self, name: str, *, limit: int, prefetch: int = 0, ageing: Duration | None = None) -> str:
        """Declares how many jobs of a pool run at once, wherever they run; answers its name."""
        whole_number_of(limit, field="limit", least=0, most=MOST_SLOTS)
        ageing_ms = None if ageing is None else ms_of(ageing, field="ageing", least=1, most=DAY_MS)
        self._register.add_pool(Pool(name=PoolName(name), slots=limit, prefetch=prefetch, ageing_ms=ageing_ms))
        return name

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Graphs' own comes with a queue: it asks an execution service, and looks at grants."""
        handlers: dict[str, Handler] = {name: job.handler for name, job in self._register.jobs.items()}
        return handlers if self._graph_runs is None else {**handlers, GRAPH_RUN: self._graph_runs}

    @property
    def graphs(self) -> Registry:
        """Where its graphs are found, for the service that executes them."""
        return self._register.found_at

    @property
    def jobs(self) -> Sequence[str]:
        return list(self._register.jobs)

    # Opening

    async def prepare(self, queue: Queue) -> Reconciled:
        """Makes pools and schedules on a queue what is declared here; one that has no fire left is nobody's trouble."""
        for pool in self._register.pools.values():
            await queue.pools.declare(pool)
        if self._register.graphs:
            self._graph_runs = queue.graph_runs(self._register.found_at)
        schedules, policies = self._register.schedules.values(), queue.settings.policies
        declared = [each.declared(policies) for each in schedules]
        reconciled = await queue.declarations.reconcile(self.name, declared, owner=self.owner)
        now = queue.storage.clock.now() // SECOND
        over = {each.id for each in declared if each.cadence.next_second(now) is None}
        if taken := [each for each in reconciled.conflicts if each[0] not in over]:
            raise ScheduleTaken(taken)
        return reconciled

    async def open(self) -> Self:
        """Opens the database, migrates it, and makes it what is declared; to be closed in the same event loop."""
        if self._loop is not None and not self._loop.is_closed():
            raise AlreadyOpen
        self._loop = asyncio.get_running_loop()
        try:
            self._opened, self.reconciled = await self._client()
        except BaseException:
            self._loop = None
            raise
        return self

    async def close(self) -> None:
        client, self._opened, self._loop = self._opened, None, None
        graph_runs, self._graph_runs = self._graph_runs, None
        if graph_runs is not None:
            await graph_runs.close()
        if client is not None:
            await client.queue.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def queue(self) -> Queue:
        """Every use case, a noun an attribute: `app.queue.schedules.backfill(…)`, `app.queue.why.slot(…)`."""
        return self._open_client.queue

    async def _client(self) -> tuple[Client, Reconciled]:
        queue = await Queue.open(self.settings)
        try:
            reconciled = await self.prepare(queue)
        except BaseException:
            await queue.close()
            raise
        return Client(queue, self._register, self.owner), reconciled

    async def _client_aside(self) -> tuple[Client, Reconciled]:
        if self.settings.database_url == ":memory:":
            raise InvalidInput("database", "memory belongs to one event loop alone", fix="name a file")
        before = self._graph_runs
        try:
            return await self._client()
        finally:
            # It works for nobody: whoever runs jobs has one on a queue of its own.
            aside, self._graph_runs = self._graph_runs, before
            if aside is not None and aside is not before:
                await aside.close()

    @property
    def _open_client(self) -> Client:
        if self._opened is None or self._loop is not asyncio.get_running_loop():
            raise NotOpen
        return self._opened

    # Using

    async def put(
        self, job: Named, params: Params | None = None, *, key: str | None = None, **options: Unpack[PutOptions]
    ) -> Put:
        """Durable when it returns. A `key` that waits already is replaced, one that runs is left alone."""
        return await self._open_client.put(job, params, key=key, **options)

    async def put_many(self, job: Named, params: Iterable[Params], **options: Unpack[PutOptions]) -> list[Put]:
        """The same job for each of many params: all or none of them, in one transaction."""
        return await self._open_client.put_many(job, params, **options)

    async def result(self, job: Awaited, *, timeout: Duration | float | None = None) -> Any:  # noqa: ASYNC109 - one time for all looks
        """What the job's function returned, once it has; raises JobFailed, or JobNotEnded when time is up."""
        return await self._open_client.result(job, timeout=timeout)

    async def trigger(self, schedule: Named, *, key: str | None = None) -> Run:
        """A run by hand, now, by a schedule's id or the function it runs; the same key answers the same run."""
        return await self._open_client.trigger(schedule, key=key)

    async def pause(self, schedule: Named) -> Schedule:
        """Opens no more slots of it, in this and every later run of the program, until it is resumed."""
        return await self._open_client.pause(schedule)

    async def resume(self, schedule: Named) -> Schedule:
        return await self._open_client.resume(schedule)

    async def schedules(self) -> list[Schedule]:
        return await self._open_client.schedules()

    # Running

    async def run(self, *, worker: bool = True, timekeeper: bool = True, grace: Duration | None = None) -> None:
        """Keeps time and works until SIGINT, SIGTERM or `stop()`; what runs then may go on for `grace` (30 s)."""
        async with self._open_here():
            self._stop = Stop()
            try:
                with stopped_by_signals(self._stop):
                    await run_until(self._stop, await self._parts(worker, timekeeper, grace))
            finally:
                self._stop = None

    def run_sync(self, *, worker: bool = True, timekeeper: bool = True, grace: Duration | None = None) -> None:
        """`run` in an event loop of its own: the last line of a program."""
        asyncio.run(self.run(worker=worker, timekeeper=timekeeper, grace=grace))

    async def work(self, *, grace: Duration | None = None) -> None:
        await self.run(timekeeper=False, grace=grace)

    async def keep_time(self) -> None:
        await self.run(worker=False)

    @asynccontextmanager
    async def running(
        self, *, worker: bool = True, timekeeper: bool = True, grace: Duration | None = None
    ) -> AsyncIterator[Self]:
        """Open, and at work in the background while this lasts: for programs with a main task of their own."""
        async with self._open_here(), running(await self._parts(worker, timekeeper, grace)):
            yield self

    def stop(self) -> None:
        """Lets `run` return, from any thread."""
        if self._stop is not None:
            self._stop.ask()

    async def worker_pools(self, queue: Queue) -> Mapping[PoolName, int]:
        """How many jobs of each pool this program runs at once: as many as the pool allows."""
        pools = self._register.pools_used
        slots = {name: (pool or await queue.pools.get(name)).slots for name, pool in pools.items()}
        return {name: min(count, _MOST_EXECUTORS) for name, count in slots.items() if count}

    async def _parts(self, worker: bool, timekeeper: bool, grace: Duration | None) -> list[Part]:
        queue = self.queue
        parts: list[Part] = [queue.timekeeper()] if timekeeper else []
        if worker:
            pools = await self.worker_pools(queue)
            wait = None if grace is None else Micros(ms_of(grace, field="grace", least=0, most=DAY_MS) * 1_000)
            name = f"{self.name} {os.getpid()}"
            parts.append(queue.worker(handlers=self.handlers, pools=pools, name=name, grace=wait))
        return parts

    @asynccontextmanager
    async def _open_here(self) -> AsyncIterator[None]:
        """What is open already stays open afterwards."""
        if self._opened is not None and self._loop is asyncio.get_running_loop():
            yield
            return
        async with self:
            yield
