"""The app for code without an event loop: every call waits for its answer, which another thread fetches."""

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import Any, Self, TypeVar, Unpack

from duly.app.client import Client, FromOptions, GroupOptions, Named, PutOptions
from duly.app.declared import Params
from duly.app.durations import Duration
from duly.app.refusals import CalledInLoop
from duly.app.results import Awaited
from duly.app.templates import Asked
from duly.domain.declarations import Reconciled
from duly.domain.errors import Unavailable
from duly.domain.explanations import Explained, Explanation
from duly.domain.groups import Group
from duly.domain.jobs import Job, Put
from duly.domain.runs import Run
from duly.domain.schedules import Schedule
from duly.domain.webhooks.endpoints import Endpoint

T = TypeVar("T")
OpenClient = Callable[[], Awaitable[tuple[Client, Reconciled]]]


class Sync:
    """Opens at the first call, and closes when its `with` block or the program ends. Any thread may call.

    One thread with one event loop fetches all answers. In a forked process it begins anew.
    """

    def __init__(self, open_client: OpenClient) -> None:
        self._open_client = open_client
        self._guard = threading.Lock()
        self._portal: _Portal | None = None
        self._closes_at_exit = False

    def put(
        self,
        job: Named,
        params: Params | None = None,
        *,
        key: str | None = None,
        connection: object | None = None,
        **options: Unpack[PutOptions],
    ) -> Put:
        return self._ask(lambda client: client.put(job, params, key=key, connection=connection, **options))

    def put_many(
        self, job: Named, params: Iterable[Params], *, connection: object | None = None, **options: Unpack[PutOptions]
    ) -> list[Put]:
        return self._ask(lambda client: client.put_many(job, params, connection=connection, **options))

    def put_from(
        self, template: str, params: Params | None = None, *, key: str | None = None, **options: Unpack[FromOptions]
    ) -> Put:
        return self._ask(lambda client: client.put_from(template, params, key=key, **options))

    def group(self, members: Iterable[Asked], **options: Unpack[GroupOptions]) -> Group:
        return self._ask(lambda client: client.group(members, **options))

    def group_ended(self, group: str | Group, *, timeout: Duration | float | None = None) -> Group:
        return self._ask(lambda client: client.group_ended(group, timeout=timeout))

    def retry(self, job: Awaited, *, key: str | None = None) -> Put:
        return self._ask(lambda client: client.retry(job, key=key))

    def edit(self, job: Awaited, params: Params) -> Job:
        return self._ask(lambda client: client.edit(job, params))

    def result(self, job: Awaited, *, timeout: Duration | float | None = None) -> Any:
        return self._ask(lambda client: client.result(job, timeout=timeout))

    def why(self, asked: Awaited | Group) -> Explanation | Explained:
        return self._ask(lambda client: client.why(asked))

    def direct(self, job: Named, params: Params | None = None, *, timeout: Duration | float | None = None) -> Any:
        return self._ask(lambda client: client.direct(job, params, timeout=timeout))

    def trigger(self, schedule: Named, *, key: str | None = None) -> Run:
        return self._ask(lambda client: client.trigger(schedule, key=key))

    def pause(self, schedule: Named) -> Schedule:
        return self._ask(lambda client: client.pause(schedule))

    def resume(self, schedule: Named) -> Schedule:
        return self._ask(lambda client: client.resume(schedule))

    def schedules(self) -> list[Schedule]:
        return self._ask(lambda client: client.schedules())

    def add_webhook(self, url: str, *, events: Sequence[str] = ("*",), everything: bool = True) -> tuple[Endpoint, str]:
        return self._ask(lambda client: client.add_webhook(url, events=events, everything=everything))

    def __enter__(self) -> Self:
        self._opened()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._guard:
            portal, self._portal = self._portal, None
        if portal is not None and portal.is_here:
            portal.close()

    def _ask(self, call: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        return self._opened().ask(call)

    def _opened(self) -> "_Portal":
        if _is_in_loop():
            raise CalledInLoop
        with self._guard:
            if self._portal is None or not self._portal.is_here:
                self._portal = _Portal(self._open_client)
                if not self._closes_at_exit:
                    _at_exit(self.close)
                    self._closes_at_exit = True
            return self._portal


class _Portal:
    """A thread with an event loop and a client of its own."""

    def __init__(self, open_client: OpenClient) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="duly-sync", daemon=True)
        self._thread.start()
        try:
            self._client, _ = self._wait(_awaited(open_client()))
        except BaseException:
            self._end()
            raise

    @property
    def is_here(self) -> bool:
        return self._pid == os.getpid()

    def ask(self, call: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        return self._wait(call(self._client))

    def close(self) -> None:
        try:
            self._wait(_quiet(self._loop))
            self._wait(self._client.close())
        finally:
            self._end()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise Unavailable("app.sync was closed while it was asked; ask again, and it opens anew") from None
        except BaseException:  # whoever is interrupted waits no longer, and nobody else would fetch the answer
            future.cancel()
            raise

    def _end(self) -> None:
        self._wait(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _awaited(opening: Awaitable[T]) -> T:
    return await opening


async def _quiet(loop: asyncio.AbstractEventLoop) -> None:
    """Whoever still waits for an answer is told that none will come."""
    others = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _at_exit(close: Callable[[], None]) -> None:
    """Before the interpreter ends the threads that closing a database needs, which is when `atexit` would call."""
    register: Callable[[Callable[[], None]], object] = getattr(threading, "_register_atexit", atexit.register)
    register(close)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
