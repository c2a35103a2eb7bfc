"""Direct calls over HTTP: the answer, the deadline, callers that hang up, servers that stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from duly.bootstrap import Queue, Settings, serve
from duly.domain.templates import NewTemplate
from duly.domain.tokens import Role
from duly.worker.coroutines import in_loop
from tests.http.site import POOL, Site, is_problem


class Program:
    """What a server was started with."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.go_on = asyncio.Event()
        self.stopped = asyncio.Event()
        self.handlers = {"echo": self.echo, "hold": self.hold, "break": self.fail, "fit": in_loop(self.fit)}

    async def fit(self, question: str) -> str:
        self.entered.set()
        return question

    async def echo(self, job: Any) -> dict[str, str]:
        return {"given": job.payload}

    async def hold(self, job: Any) -> dict[str, bool]:
        self.entered.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return {"held": True}

    async def fail(self, job: Any) -> None:
        raise ValueError("as asked")


@asynccontextmanager
async def _with_program(site: Site) -> AsyncIterator[Program]:
    program = Program()
    for kind in ("echo", "hold", "break", "unheard", "fit"):
        await site.queue.templates.create(NewTemplate(name=kind, kind=kind, pool=POOL), owner="ann")
    calls = site.queue.direct_calls(handlers=lambda: program.handlers, name="site")
    site.api.state.direct_calls = site.remote_api.state.direct_calls = calls
    try:
        yield program
    finally:
        await calls.close()


async def _used(queue: Queue) -> int:
    return (await queue.pools.get(POOL)).used


@pytest.mark.req("DEC-004")
async def test_a_call_is_answered_with_what_the_handler_answers(site: Site) -> None:
    async with _with_program(site):
        answer = await site.local.post("/api/v1/direct/echo", json={"params": {"n": 1}})
        assert (answer.status_code, answer.json()) == (200, {"result": {"given": '{"n":1}'}})
        assert (await site.local.post("/api/v1/direct/echo")).json() == {"result": {"given": "{}"}}
        assert await _used(site.queue) == 0


@pytest.mark.req("DEC-004", error=True)
async def test_what_cannot_be_called_is_a_problem_with_its_reason(site: Site) -> None:
    async with _with_program(site) as program:
        post = site.local.post
        is_problem(await post("/api/v1/direct/nothing"), 404, "unknown_template")
        is_problem(await post("/api/v1/direct/unheard"), 409, "no_handler")
        is_problem(await post("/api/v1/direct/echo", json={"timeout_ms": 0}), 422, "invalid_input")
        problem = is_problem(await post("/api/v1/direct/break"), 502, "direct_failed")
        assert problem["detail"] == "ValueError: as asked"
        misfit = is_problem(await post("/api/v1/direct/fit", json={"params": {"query": "rain"}}), 422, "invalid_input")
        assert misfit["errors"][0]["pointer"] == "/params"
        assert "missing a required argument: 'question'" in misfit["detail"]
        assert not program.entered.is_set()
        answer = None
        while not program.entered.is_set():  # on a slow machine its time is up before its turn
            answer = await post("/api/v1/direct/hold", json={"timeout_ms": 500})
        assert answer is not None
        is_problem(answer, 504, "deadline")
        assert program.stopped.is_set()
        assert await _used(site.queue) == 0
        await site.queue.pools.pause(POOL)
        is_problem(await post("/api/v1/direct/echo"), 409, "pool_paused")
        await site.queue.pools.drain(POOL)
        is_problem(await post("/api/v1/direct/echo"), 409, "pool_draining")


@pytest.mark.req("DEC-004", error=True)
async def test_a_server_without_a_program_and_somebody_elses_template_are_refused(quick_site: Site) -> None:
    await quick_site.queue.templates.create(NewTemplate(name="alone", kind="echo"), owner="ann")
    is_problem(await quick_site.local.post("/api/v1/direct/alone"), 409, "no_handler")
    async with _with_program(quick_site):
        bob, ann = await quick_site.caller("bob"), await quick_site.caller("ann")
        viewer = await quick_site.caller("ann", Role.VIEWER)
        is_problem(await bob.post("/api/v1/direct/echo"), 404, "unknown_template")
        is_problem(await viewer.post("/api/v1/direct/echo"), 403)
        assert (await ann.post("/api/v1/direct/echo")).status_code == 200


@pytest.mark.req("DEC-004")
async def test_a_caller_that_hangs_up_ends_its_call(site: Site) -> None:
    async with _with_program(site) as program, site.served() as server:
        async with httpx2.AsyncClient(base_url=server.url) as client:
            call = asyncio.create_task(client.post("/api/v1/direct/hold"))
            await program.entered.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        await program.stopped.wait()
        while await _used(site.queue):  # noqa: ASYNC110 - what is waited for is in the store
            await asyncio.sleep(0.01)


@pytest.mark.req("DEC-004")
async def test_a_server_that_is_told_to_stop_answers_what_runs_and_refuses_what_comes(place: str) -> None:
    queue = await Queue.open(Settings(database_url=place))
    program, stop = Program(), asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    await queue.templates.create(NewTemplate(name="hold", kind="hold"), owner="ann")
    serving = asyncio.create_task(
        serve(
            queue,
            host="127.0.0.1",
            port=0,
            stop=stop,
            on_ready=address.set_result,
            handlers=lambda: program.handlers,
        )
    )
    async with asyncio.timeout(60), httpx2.AsyncClient(base_url=await address, timeout=60) as client:
        running = asyncio.create_task(client.post("/api/v1/direct/hold"))
        await program.entered.wait()
        stop.set()
        await asyncio.sleep(0)
        is_problem(await client.post("/api/v1/direct/hold"), 503, "direct_stopped")
        assert not running.done()
        program.go_on.set()
        assert (await running).json() == {"result": {"held": True}}
        await serving
    assert (await queue.health.census()).sessions == 0
    await queue.close()
