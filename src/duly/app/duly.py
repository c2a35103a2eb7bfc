"""The front door for Python programs: declare jobs and schedules, put, wait, run."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from duly.app.client import Client
from duly.app.declared import Params
from duly.app.declaring import Declaring
from duly.app.direct import called
from duly.app.durations import Duration, ms_of
from duly.app.refusals import AlreadyOpen, NotOpen, ScheduleTaken
from duly.app.reviews import OwnReviews
from duly.app.running import Part, Stop, run_until, running, stopped_by_signals
from duly.app.sync import Sync
from duly.app.templates import make_templates
from duly.app.using import Using
from duly.app.workflows import deploy_declared
from duly.bootstrap import DirectCalls, Handler, Queue, Settings, settings_of_environment
from duly.domain.declarations import Reconciled
from duly.domain.errors import InvalidInput
from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Micros
from duly.domain.retries import DAY_MS
from duly.domain.texts import text_of

if TYPE_CHECKING:
    from duly.bootstrap import GraphRuns

# Of one pool, by one program: each may be a thread.
_MOST_EXECUTORS = 1_000


class Duly(Declaring, Using):
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
        super().__init__()
        if database is not None and settings is not None:
            raise InvalidInput("database", "the settings name one, too", fix="pass either of them")
        self._database = None if database is None else str(database)
        self._settings = settings
        self.name = text_of(name, field="name", longest=64)
        self.owner = text_of(owner, field="owner")
        self.reconciled: Reconciled | None = None
        self.sync = Sync(self._client_aside)
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

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Graphs' own comes with a queue: it asks an execution service, and looks at grants."""
        handlers = self._register.handlers
        return handlers if self._graph_runs is None else {**handlers, GRAPH_RUN: self._graph_runs}

    # Opening

    async def prepare(self, queue: Queue) -> Reconciled:
        """Makes pools and schedules on a queue what is declared here; one that has no fire left is nobody's trouble."""
        for pool in self._register.pools.values():
            await queue.pools.declare(pool)
        await make_templates(queue, list(self._register.templates.values()), owner=self.owner)
        if self._register.runs_graphs:
            self._graph_runs = queue.graph_runs(self._register.found_at)
            await deploy_declared(queue, self._register, program=self.name, owner=self.owner)
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
            await client.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def reviews(self) -> OwnReviews:
        """What its owner's runs ask people: to list, to approve, to reject, to answer."""
        return OwnReviews(self.queue, self.owner)

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

    async def direct_on(
        self,
        calls: DirectCalls,
        name: str,
        params: Params | None = None,
        *,
        owner: str | None,
        timeout: Duration | float | None = None,  # noqa: ASYNC109 - one time for place and run
    ) -> Any:
        """The same for a front door that has opened the queue itself; `owner` None sees all templates."""
        return await called(calls, self._register, name, params, owner=owner, timeout=timeout)

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
