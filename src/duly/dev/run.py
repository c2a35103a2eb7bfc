"""Runs API, timekeeper, worker and your program in one process until somebody says stop."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from duly.app.duly import Duly
from duly.app.loading import AppNotLoaded, load
from duly.bootstrap import Queue, Settings, configure_logging, database_file, moment, serve
from duly.dev import demo
from duly.dev.alone import alone_on
from duly.dev.options import DevOptions
from duly.dev.port import require_port
from duly.dev.postgres import local_postgres
from duly.dev.reviews import Questions
from duly.dev.screen import Screen
from duly.dev.stage import Stage
from duly.dev.watch import Look, Watch, look_at
from duly.domain.declarations import Reconciled
from duly.domain.errors import DulyError, InvalidInput
from duly.domain.ids import PoolName
from duly.domain.pools import DEFAULT_POOL
from duly.domain.schedules import Schedule
from duly.http.access import is_loopback
from duly.version import __version__

_INTERRUPTED = 130
_MOST_SHOWN = 50


async def run_dev(options: DevOptions) -> int:
    """The exit code. What cannot be used, a database, a port, a program's file, is an error of Duly."""
    screen = Screen(moment)
    stop = asyncio.Event()
    with _stopped_by_signals(stop, screen):
        seen = look_at(options.program)
        app = await _program(options, screen)
        async with _settings(options, app) as settings:
            require_port(options.host, options.port, database_file(settings))
            with alone_on(database_file(settings)):
                configure_logging(settings, level="error")
                queue = await Queue.observed(settings, screen)
                try:
                    await _require_tokens(queue, options)
                    await _Dev(options, queue, screen, stop, seen).run(app)
                finally:
                    await queue.close()
    screen.note("stopped; what is scheduled and queued is still there")
    return 0


async def _program(options: DevOptions, screen: Screen) -> Duly | None:
    if options.program.is_file():
        return await _loaded(options.program, screen)
    return demo.demo() if options.demo else None


async def _loaded(file: Path, screen: Screen) -> Duly | None:
    """In a thread, for as long as the program takes to import what it needs."""
    try:
        return await asyncio.to_thread(load, str(file))
    except AppNotLoaded as error:
        fix = f" ({error.fix})" if error.fix else ""
        screen.complain(f"{error.reason}{fix}".replace(f"{file}:", f"{file.name}:"))
        if error.trace:
            screen.say(error.trace.rstrip())
        return None


@asynccontextmanager
async def _settings(options: DevOptions, app: Duly | None) -> AsyncIterator[Settings]:
    """A program may name its database; PostgreSQL on demand comes before that."""
    if options.postgres:
        async with local_postgres(options.folder / ".duly" / "postgres") as url:
            yield replace(options.settings, database_url=url)
    elif app is not None and options.program.is_file():
        yield replace(options.settings, database_url=app.settings.database_url)
    else:
        yield options.settings


async def _require_tokens(queue: Queue, options: DevOptions) -> None:
    """Where others can reach it, a server without tokens would let nobody in."""
    host = options.host
    if is_loopback(host):
        return
    now = queue.storage.clock.now()
    tokens = await queue.tokens.list(owner=None)
    if not any(each.revoked_at is None and (each.expires_at is None or each.expires_at > now) for each in tokens):
        raise InvalidInput(
            "--host",
            f"{host} can be reached by others, and nobody has a token",
            fix=f"make one: {options.command} token add",
        )


@contextmanager
def _stopped_by_signals(stop: asyncio.Event, screen: Screen) -> Iterator[None]:
    """The first asks, the second does not."""
    loop = asyncio.get_running_loop()

    def told() -> None:
        if stop.is_set():
            os._exit(_INTERRUPTED)
        stop.set()
        screen.note("stopping; once more to stop at once")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


class _Dev:
    """Everything at work. Time is kept by one timekeeper from beginning to end, whatever the program does."""

    def __init__(self, options: DevOptions, queue: Queue, screen: Screen, stop: asyncio.Event, seen: Look) -> None:
        self._options = options
        self._queue = queue
        self._screen = screen
        self._stop = stop
        self._stage = Stage(queue)
        self._watch = Watch(options.program, queue.storage.clock, seen=seen)

    async def run(self, app: Duly | None) -> None:
        is_demo = app is not None and app.name == demo.NAME and not self._options.program.is_file()
        if is_demo:
            await demo.fund(self._queue)
        reconciled = Reconciled() if app is None else await self._stage.play(app)
        pools = {} if app is None else await app.worker_pools(self._queue)
        schedules = await self._schedules()
        if is_demo:
            await demo.ask(self._queue)

        def introduce(url: str) -> None:
            self._introduce(url, app, pools)
            self._screen.scheduled(schedules)
            self._tell_restored(reconciled)

        await self._work(self._serve(introduce))

    def _serve(self, introduce: Callable[[str], None]) -> Coroutine[Any, Any, None]:
        return serve(
            self._queue,
            host=self._options.host,
            port=self._options.port,
            stop=self._stop,
            on_ready=introduce,
            handlers=self._stage.handlers,
        )

    async def _work(self, server: Coroutine[Any, Any, None]) -> None:
        """Until one of them ends, which is an error unless somebody said stop."""
        keeper = self._queue.timekeeper()
        serving, keeping = asyncio.create_task(server), asyncio.create_task(keeper.run())
        questions = Questions(self._queue, self._screen, self._options.command)
        # What looks on, and ends at once when told to.
        aside = [asyncio.create_task(each) for each in (self._follow(), questions.follow(), self._stop.wait())]
        try:
            parts: set[asyncio.Future[Any]] = {serving, keeping, *aside, self._stage.broke_down}
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stop.set()
            for task in aside:
                task.cancel()
            keeper.stop()
            # First, so that nobody is put on stage any more.
            await asyncio.gather(*aside, return_exceptions=True)
            await asyncio.gather(self._stage.close(), keeping, serving, return_exceptions=True)
        for part in done:
            part.result()

    def _introduce(self, url: str, app: Duly | None, pools: Mapping[PoolName, int]) -> None:
        say, program = self._screen.say, self._options.program
        say(f"duly {__version__}  {url}  database {_shown(self._queue.settings)}  times in {self._screen.zone_name}")
        say(f"the API is explained at {url}/docs")
        if app is None:
            how = "" if program.is_file() else f"; `{self._options.command} init` writes one"
            say(f"no program runs; it begins when {program.name} loads{how}")
        elif not program.is_file():
            say(f"this is a demo; `{self._options.command} init` writes a {program.name} of your own")
            if not demo.has_graphs():
                say(demo.how_to_get_graphs(self._options.command))
        else:
            say(f"{program.name} is followed: save it, and it is loaded again")
        if pools:
            say(_at_once(pools))
        say()

    def _tell_restored(self, reconciled: Reconciled) -> None:
        if reconciled.restored:
            told = ", ".join(reconciled.restored)
            self._screen.note(f"changed back to what {self._options.program.name} says: {told}")

    async def _schedules(self) -> list[Schedule]:
        return list(await self._queue.schedules.list(owner=None, most=_MOST_SHOWN))

    async def _follow(self) -> None:
        """Loads the program again whenever it was changed; while it cannot be, the old one stays."""
        while True:
            if not await self._watch.changed():
                self._screen.note(f"{self._options.program.name} is gone; what it declared goes on")
                continue
            app = await _loaded(self._options.program, self._screen)
            if app is None:
                continue
            try:
                reconciled = await self._stage.play(app)
            except DulyError as error:
                self._screen.complain(f"{self._options.program.name} was not taken over: {error}")
                continue
            changed = [each for each in reconciled.updated if each not in reconciled.restored]
            counts = {
                "new": reconciled.created,
                "changed": changed,
                "changed back": reconciled.restored,
                "gone": reconciled.retired,
            }
            told = ", ".join(f"{len(ids)} {what}" for what, ids in counts.items() if ids)
            self._screen.note(f"{self._options.program.name} loaded again: {told or 'the same schedules'}")
            self._tell_restored(reconciled)
            if told:
                self._screen.scheduled(await self._schedules())


def _at_once(pools: Mapping[PoolName, int]) -> str:
    told = ", ".join(f"{count} in pool {name!r}" for name, count in pools.items())
    if DEFAULT_POOL in pools:
        return f'run at once: {told}; pool=app.pool("wide", limit=4) lets jobs run beside each other'
    return f"run at once: {told}; jobs that name no pool are in {DEFAULT_POOL!r}, which runs one at a time"


def _shown(settings: Settings) -> str:
    file = database_file(settings)
    if file is None:
        return settings.database_shown
    try:
        return f"./{file.relative_to(Path.cwd())}"
    except ValueError:
        return str(file)
