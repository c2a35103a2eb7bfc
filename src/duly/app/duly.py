"""The front door for Python programs: declare jobs and schedules, put, wait, run."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from duly.app.client import Client, FromOptions, GroupOptions, Named, PutOptions
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
from duly.app.direct import called
from duly.app.durations import Duration, ms_of
from duly.app.graphs import DeclaredGraph, graph_of, terms_of
from duly.app.refusals import AlreadyOpen, NotOpen, ScheduleTaken
from duly.app.register import Register
from duly.app.results import Awaited
from duly.app.reviews import OwnReviews
from duly.app.running import Part, Stop, run_until, running, stopped_by_signals
from duly.app.sync import Sync
from duly.app.templates import Asked, TemplateOptions, make_templates, template_of
from duly.app.workflows import declare_action, deploy_declared, workflow_of
from duly.bootstrap import (
    DirectCalls,
    Handler,
    Queue,
    Registry,
    Settings,
    command,
    commands,
    handler_for,
    settings_of_environment,
)
from duly.domain.declarations import Reconciled
from duly.domain.errors import InvalidInput
from duly.domain.executions import GRAPH_RUN, OnCrash
from duly.domain.explanations import Explained, Explanation
from duly.domain.groups import Group
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import Job, Put
from duly.domain.pools import MOST_SLOTS, Pool
from duly.domain.retries import DAY_MS
from duly.domain.runs import Run
from duly.domain.schedules import Schedule
from duly.domain.templates import COMMAND_KIND, Command
from duly.domain.texts import text_of, whole_number_of
from duly.domain.webhooks.endpoints import Endpoint

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

    def template(
        self,
        name: str,
        job: Named | Command,
        *,
        params: Params | None = None,
        schema: Mapping[str, Any] | None = None,
        **options: Unpack[TemplateOptions],
    ) -> str:
        """Declares a template of a job, by function or name, or of a `Command`; answers its name.

        With a `schedule` it runs as it is when each slot fires. Who changes it here changes it when the app is opened.
        """
        made, schedule = template_of(self._register, name, job, params=params, schema=schema, options=options)
        self._register.add_template(made, schedule)
        return made.name

    def run_commands(self, *, artifacts: str | Path | None = None) -> None:
        """Lets this program's worker run the programs that templates name: whoever defines those rules its machine."""
        self._register.add(job_of(COMMAND_KIND, commands(artifacts=artifacts), None, {}), None)

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
        review_within: Duration | None = None,
        review_default: str | None = None,
        review_value: Any = None,
        **options: Unpack[GraphOptions],
    ) -> str:
        """Declares a graph, as `"module:attr"` or as the object itself; answers its id, `provider:name`.

        With a `schedule` it runs under a grant of its own, at the cost of the owner's account; `max_cost` is held
        before each run. A place is loaded by the execution service alone, never by a worker that asks one elsewhere.
        What it asks people may wait for `review_within` (7 days); then `review_default` counts: approve, reject, fail,
        or edit, which goes on with `review_value`.
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
        params |= terms_of(review_within, review_default, review_value)
        schedule = schedule_of_graph(name, params, options)
        declared = DeclaredGraph(id=graph_id, schedule_id=None if schedule is None else schedule.id, params=params)
        self._register.add_graph(declared, schedule)
        return graph_id

    @overload
    def action(self, named: str, found_at: None = None) -> Callable[[F], F]: ...

    @overload
    def action(self, named: str, found_at: str | Callable[..., Any]) -> str: ...

    @overload
    def action(self, named: F) -> F: ...

    def action(self, named: Any, found_at: Any = None) -> Any:
        """Registers what nodes of workflows may name: `@app.action`, `@app.action("name")`, or with where it is found.

        `app.action("send", "package.mail:send")` is loaded by the execution service alone; without a name, the place
        is the name.
        """
        return declare_action(self._register.found_at, named, found_at)

    def workflow(self, document: Mapping[str, Any] | str | Path) -> str:
        """Declares a workflow, a document or the path of one, to deploy when the app opens; answers its name."""
        declared, name = workflow_of(document)
        self._register.workflows.append(declared)
        return name

    def pool(
        self,
        name: str,
        *,
        limit: int,
        prefetch: int = 0,
        ageing: Duration | None = None,
        per_owner: int | None = None,
    ) -> str:
        """Declares how many jobs of a pool run at once, wherever they run, and of one owner in it; answers its name."""
        whole_number_of(limit, field="limit", least=0, most=MOST_SLOTS)
        ageing_ms = None if ageing is None else ms_of(ageing, field="ageing", least=1, most=DAY_MS)
        self._register.add_pool(
            Pool(name=PoolName(name), slots=limit, prefetch=prefetch, ageing_ms=ageing_ms, per_owner=per_owner)
        )
        return name

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Graphs' own comes with a queue: it asks an execution service, and looks at grants."""
        handlers = self._register.handlers
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

    # Using

    async def put(
        self,
        job: Named,
        params: Params | None = None,
        *,
        key: str | None = None,
        connection: object | None = None,
        **options: Unpack[PutOptions],
    ) -> Put:
        """Durable when it returns. A `key` that waits already is replaced, one that runs is left alone.

        With a `connection` of your own to the same Postgres, the job is part of its transaction: durable when that is.
        """
        return await self._open_client.put(job, params, key=key, connection=connection, **options)

    async def direct(self, job: Named, params: Params | None = None, *, timeout: Duration | float | None = None) -> Any:  # noqa: ASYNC109 - one time for place and run
        """What a template's handler answers, or a declared job's: run in this process, now or right after what runs.

        It comes before the queue and puts no job. Raises DirectFailed, or Deadline when time is up (60 s).
        """
        return await self._open_client.direct(job, params, timeout=timeout)

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

    async def put_many(
        self, job: Named, params: Iterable[Params], *, connection: object | None = None, **options: Unpack[PutOptions]
    ) -> list[Put]:
        """The same job for each of many params: all or none of them, in one transaction."""
        return await self._open_client.put_many(job, params, connection=connection, **options)

    async def put_from(
        self, template: str, params: Params | None = None, *, key: str | None = None, **options: Unpack[FromOptions]
    ) -> Put:
        """A job made from a template: a snapshot, with what is given here in its places, that stays as it is."""
        return await self._open_client.put_from(template, params, key=key, **options)

    async def group(self, members: Iterable[Asked], **options: Unpack[GroupOptions]) -> Group:
        """Puts jobs that belong together: each a job or a template, alone or as a pair with its params."""
        return await self._open_client.group(members, **options)

    async def group_ended(self, group: str | Group, *, timeout: Duration | float | None = None) -> Group:  # noqa: ASYNC109 - one time for all looks
        """The group once all its members have ended; raises GroupRunning when time is up."""
        return await self._open_client.group_ended(group, timeout=timeout)

    async def retry(self, job: Awaited, *, key: str | None = None) -> Put:
        """Tries an ended job again by hand; the same key answers the same attempt."""
        return await self._open_client.retry(job, key=key)

    async def edit(self, job: Awaited, params: Params) -> Job:
        """Other params for a job that nobody has yet; from its dispatch on they are fixed."""
        return await self._open_client.edit(job, params)

    async def result(self, job: Awaited, *, timeout: Duration | float | None = None) -> Any:  # noqa: ASYNC109 - one time for all looks
        """What the job's function returned, once it has; raises JobFailed, or JobNotEnded when time is up."""
        return await self._open_client.result(job, timeout=timeout)

    async def why(self, asked: Awaited | Group) -> Explanation | Explained:
        """Why a schedule, run, job, group or run of a workflow is as it is: its `answer`, and `sentences`."""
        return await self._open_client.why(asked)

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

    async def add_webhook(
        self, url: str, *, events: Sequence[str] = ("*",), everything: bool = True
    ) -> tuple[Endpoint, str]:
        """Who is told of what ends, and the secret that it is signed with, shown this once."""
        return await self._open_client.add_webhook(url, events=events, everything=everything)

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
