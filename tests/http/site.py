"""The API on one store, and short words for what callers do."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2

from duly.bootstrap import Queue, Registry, Settings, Worker
from duly.domain.executions import ExecutionRequest, GraphResult
from duly.domain.ids import PoolName
from duly.domain.instants import Micros
from duly.domain.pools import Pool
from duly.domain.reviews import Review
from duly.domain.runs import RunStatus
from duly.domain.tokens import Role
from duly.http.access import Access
from duly.http.api import create_api
from duly.http.inbound import Inbound
from duly.http.server import serve
from duly.worker.handlers import Handler

POOL = PoolName("wide")
DAILY = {"target": "greet", "cron": "0 9 * * *", "pool": "wide"}


class Site:
    """`local` is a caller on this machine; `remote` is the same API on an address where everybody needs a token."""

    def __init__(self, place: str, secrets: Inbound = Inbound()) -> None:  # noqa: B008 - it never changes
        self.place = place
        self.secrets = secrets
        self._clients: list[httpx2.AsyncClient] = []

    async def open(self) -> None:
        self.queue = await Queue.open(Settings(database_url=self.place))
        await self.queue.pools.define(Pool(name=POOL, slots=100))
        self.api = create_api(self.queue, access=Access(is_local=True), metrics=_metrics)
        self.remote_api = create_api(self.queue, access=Access(is_local=False), metrics=_metrics, secrets=self.secrets)
        self.local = self.client(self.api, "http://127.0.0.1:8000")
        self.stranger = self.client(self.remote_api)

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()
        await self.queue.close()

    def client(self, api: Any, base_url: str = "http://duly.example", **headers: str) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=api)
        client = httpx2.AsyncClient(transport=transport, base_url=base_url, headers=headers)
        self._clients.append(client)
        return client

    async def caller(self, owner: str, role: Role = Role.OPERATOR) -> httpx2.AsyncClient:
        _, secret = await self.queue.tokens.create(owner=owner, role=role)
        return self.client(self.remote_api, Authorization=f"Bearer {secret}")

    async def schedule(self, client: httpx2.AsyncClient | None = None, **fields: Any) -> dict[str, Any]:
        answer = await (client or self.local).post("/api/v1/schedules", json={**DAILY, **fields})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    async def ended(self, run_id: str) -> dict[str, Any]:
        """A run, once it has ended."""
        listener = self.queue.storage.wakeups.listen()
        try:
            while True:
                run: dict[str, Any] = (await self.local.get(f"/api/v1/runs/{run_id}")).json()
                if RunStatus(run["status"]).is_terminal:
                    return run
                await listener.wait(Micros(100_000))
        finally:
            listener.close()

    async def job_ended(self, job_id: str) -> dict[str, Any]:
        """The last attempt of a job, once none follows it."""
        listener = self.queue.storage.wakeups.listen()
        try:
            while True:
                chain = (await self.local.get(f"/api/v1/jobs/{job_id}/chain")).json()["items"]
                if chain and chain[-1]["state"] is None:
                    return dict(chain[-1])
                await listener.wait(Micros(50_000))
        finally:
            listener.close()

    @asynccontextmanager
    async def working(self, **handlers: Handler) -> AsyncIterator[None]:
        """While a worker runs these handlers."""
        async with self.at_work(self.queue.worker(handlers=handlers, pools={POOL: 4}, name="test")):
            yield

    @asynccontextmanager
    async def at_work(self, worker: Worker) -> AsyncIterator[None]:
        running = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.stop()
            await running

    @asynccontextmanager
    async def working_on(self, pool: str, handlers: Mapping[str, Handler]) -> AsyncIterator[None]:
        """The same for names that are no Python names, in another pool."""
        worker = self.queue.worker(handlers=handlers, pools={PoolName(pool): 4}, name="test")
        running = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.stop()
            await running

    async def heard(self) -> None:
        """Returns when something may have changed."""
        listener = self.queue.storage.wakeups.listen()
        try:
            await listener.wait(Micros(100_000))
        finally:
            listener.close()

    @asynccontextmanager
    async def keeping_time(self) -> AsyncIterator[None]:
        timekeeper = self.queue.timekeeper()
        running = asyncio.create_task(timekeeper.run())
        try:
            yield
        finally:
            timekeeper.stop()
            await running

    @asynccontextmanager
    async def served(self) -> AsyncIterator["Served"]:
        """A real server on a port of its own."""
        stop = asyncio.Event()
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(self.api, host="127.0.0.1", port=0, stop=stop, on_ready=address.set_result))
        try:
            yield Served(await address, stop, serving, lambda: self.api.state.closing.streams)
        finally:
            stop.set()
            with suppress(asyncio.CancelledError):
                await serving


class Served:
    def __init__(self, url: str, stop: asyncio.Event, serving: asyncio.Task[None], streams: Callable[[], int]) -> None:
        self.url = url
        self.stop = stop
        self.serving = serving
        self.streams = streams


async def waiting_review(queue: Queue, *, owner: str = "ann", key: str = "k") -> Review:
    """Of a graph that asks one question, for an execution without a job."""

    async def graph() -> GraphResult:
        return GraphResult(output={"interrupts": [{"id": "q", "value": {"publish": "news"}}]}, waits=True)

    registry = Registry()
    registry.add("python:asks", graph)
    account = await queue.accounts.create(owner=owner, name=f"main {key}")
    grant = await queue.grants.create(owner=owner, account_id=account.id, scopes=["graph:execute:*"])
    request = ExecutionRequest(key=key, graph_id="python:asks", grant_id=grant.id, input={})
    execution = await queue.executions(registry).execute(request)
    (review,) = await queue.reviews.of_run(execution.run_id, owner=owner)
    return review


async def _metrics() -> bytes:
    return b"duly_up 1\n"


def is_problem(answer: httpx2.Response, status: int, code: str | None = None) -> Mapping[str, Any]:
    """Checks that an answer is a problem as RFC 9457 says it, and answers it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert set(problem) == {"type", "title", "status", "detail", "code", "request_id", "errors"}
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert code is None or problem["code"] == code, problem
    assert "Traceback" not in answer.text
    return problem
