"""Who decides, who executes, who writes: the rules of an execution, without a network."""

import ast
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from duly import Duly, every
from duly.bootstrap import Queue, Registry, Settings
from duly.domain.executions import ExecutionRequest, UnknownGraph
from duly.domain.grants import GrantTooNarrow
from duly.domain.payloads import value_of
from duly.http.executions import internal_api
from duly.http.services import ServiceAccess
from duly.ports.graphs import GraphCall
from duly.settings import settings_from

pytestmark = pytest.mark.store("sqlite")
SOURCE = Path(__file__).parents[2] / "src" / "duly"
SECRET = "a secret that two services share, of 32 bytes or more"  # noqa: S105


class Place:
    """A queue in memory with a grant, and a service whose one graph remembers its calls."""

    def __init__(self, queue: Queue, grant_id: str, account_id: str) -> None:
        self.queue = queue
        self.grant_id = grant_id
        self.account_id = account_id
        self.calls: list[GraphCall] = []
        self.graphs = Registry()
        self.graphs.add("python:g", self._graph)
        self.executions = queue.executions(self.graphs)

    async def _graph(self, call: GraphCall) -> dict[str, int]:
        self.calls.append(call)
        return {"n": 1}

    def asks(self, **given: Any) -> ExecutionRequest:
        defaults: dict[str, Any] = {"key": "k", "graph_id": "python:g", "grant_id": self.grant_id, "input": {}}
        return ExecutionRequest(**{**defaults, **given})

    async def known(self, key: str = "k") -> Any:
        return await self.queue.storage.read(lambda tx: tx.executions.by_key(key))


def in_memory(scenario: Callable[[Place], Awaitable[None]]) -> None:
    async def go() -> None:
        queue = await Queue.open(Settings(database_url=":memory:"))
        try:
            account = await queue.accounts.create(owner="ann", name="main")
            grant = await queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:python:g"])
            await scenario(Place(queue, grant.id, account.id))
        finally:
            await queue.close()

    asyncio.run(go())


@pytest.mark.req("GRAPH-01")
def test_a_schedule_of_a_graph_puts_a_job_that_names_it_and_nothing_that_runs_it() -> None:
    async def graph() -> None: ...

    app = Duly(":memory:")
    app.graph("news", graph, schedule=every("1h"), input={"topic": "ai"}, model="gpt-4o", max_cost="0.50")

    target = app._register.schedules["news"].target

    assert (target.kind, target.pool) == ("graph.run", "graphs")
    assert value_of(target.payload) == {
        "graph_id": "python:news",
        "input": {"topic": "ai", "model": "gpt-4o"},
        "on_crash": "resume",
        "max_cost": "0.50",
    }


@pytest.mark.req("GRAPH-01", error=True)
def test_what_no_provider_knows_is_refused_and_nothing_is_claimed() -> None:
    async def scenario(place: Place) -> None:
        with pytest.raises(UnknownGraph):
            await place.executions.execute(place.asks(graph_id="python:other"))
        assert await place.known() is None

    in_memory(scenario)


@pytest.mark.req("GRAPH-04")
@pytest.mark.req("GRAPH-04", error=True)
def test_the_service_looks_at_the_grant_by_itself_whoever_calls() -> None:
    async def scenario(place: Place) -> None:
        narrow = await place.queue.grants.create(
            owner="ann", account_id=place.account_id, scopes=["graph:execute:python:other"]
        )
        with pytest.raises(GrantTooNarrow):
            await place.executions.execute(place.asks(grant_id=narrow.id))
        assert not place.calls
        assert (await place.executions.execute(place.asks())).ok

    in_memory(scenario)


@pytest.mark.req("GRAPH-13")
@pytest.mark.req("GRAPH-13", error=True)
def test_a_run_has_its_id_from_the_first_claim_on_and_a_refused_one_has_none() -> None:
    async def scenario(place: Place) -> None:
        await place.queue.grants.revoke(place.grant_id, owner="ann")
        with pytest.raises(Exception, match="revoked"):
            await place.executions.execute(place.asks())
        assert await place.known() is None

        good = await place.queue.grants.create(owner="ann", account_id=place.account_id, scopes=["graph:execute:*"])
        execution = await place.executions.execute(place.asks(grant_id=good.id))

        assert place.calls[0].run_id == execution.run_id == (await place.known()).run_id

    in_memory(scenario)


@pytest.mark.req("GRAPH-16")
@pytest.mark.req("GRAPH-16", error=True)
@pytest.mark.req("GRAPH-17")
def test_execution_is_an_http_call_with_a_token_and_a_key() -> None:
    async def scenario(place: Place) -> None:
        api = internal_api(place.queue, place.executions, ServiceAccess(secret=SECRET))
        body = {"execution_grant_id": place.grant_id, "input": {}}
        path, shown = "/api/internal/graphs/python:g/runs", {"Authorization": f"Bearer {SECRET}"}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1") as client:
            without_key = await client.post(path, json=body, headers=shown)
            without_token = await client.post(path, json=body, headers={"Idempotency-Key": "k"})
            assert not place.calls
            good = await client.post(path, json=body, headers={**shown, "Idempotency-Key": "k"})

        assert [each.status_code for each in (without_key, without_token, good)] == [400, 401, 200]
        assert set(good.json()) == {"ok", "run_id", "trace_id", "error_code"}

    in_memory(scenario)


@pytest.mark.req("GRAPH-17", error=True)
def test_a_secret_that_could_be_guessed_is_refused_where_it_is_set() -> None:
    with pytest.raises(ValueError, match="DULY_INTERNAL_API_TOKEN: has fewer than 32 bytes"):
        settings_from({"DULY_INTERNAL_API_TOKEN": "short"})

    settings = settings_from({"DULY_INTERNAL_API_TOKEN": SECRET})
    assert settings.internal_api_token == SECRET
    assert SECRET not in repr(settings)


def _stores_named_in(*files: str) -> set[str]:
    """Which stores of a transaction a module asks for, as `tx.…`."""
    trees = [ast.parse((SOURCE / file).read_text(encoding="utf-8")) for file in files]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "tx"}


@pytest.mark.req("GRAPH-20")
@pytest.mark.req("GRAPH-20", error=True)
def test_the_service_touches_no_ledger_and_the_worker_no_execution() -> None:
    parts = ("executions", "claiming", "finishing", "asking", "cancelling", "call_backs", "attempts", "scribe")
    service = _stores_named_in(*(f"application/{part}.py" for part in (*parts, "checkpoints")))
    worker = (SOURCE / "worker" / "graph_runs.py").read_text(encoding="utf-8")

    assert service == {"executions", "checkpoints", "reviews", "grants", "workflows"}
    assert "self.runs.note_execution" in worker
    assert not [word for word in ("application.executions", "application.money") if word in worker]


@pytest.mark.req("GRAPH-32")
def test_a_row_is_there_before_its_grant_is_looked_at() -> None:
    async def scenario(place: Place) -> None:
        app = Duly(":memory:")
        app.graph("news", "nowhere:graph", schedule=every("1h"))
        await app.prepare(place.queue)
        grant = await place.queue.grants.of_schedule("news", owner="local")
        assert grant is not None
        await place.queue.grants.revoke(grant.id, owner="local")

        run = await place.queue.schedules.trigger("news", owner="local", key="by hand")

        assert (run.status.value, run.run_id) == ("pending", None)

    in_memory(scenario)
