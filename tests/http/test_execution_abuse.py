"""Graphs and callers that misbehave: each has a clear outcome, the service goes on, and money is exact."""

import asyncio
import threading
from typing import Any

import httpx2
import pytest

from duly.application.attempts import AttemptPace
from duly.bootstrap import Registry
from duly.domain.amounts import UNIT
from duly.domain.executions import EventKind, ModelCall
from duly.domain.instants import SECOND, Micros
from duly.http.executions import internal_api
from duly.http.services import ServiceAccess
from duly.ports.graphs import GraphEvent
from tests.http.site import Site

SECRET = "a secret that two services share, of 32 bytes or more"  # noqa: S105
PATH = "/api/internal/graphs/python:bad/runs"
PACE = AttemptPace(patience=Micros(SECOND // 5))


class Abused:
    """A service with one graph that misbehaves, and an account with money."""

    def __init__(self, site: Site, graph: Any) -> None:
        self.queue = site.queue
        registry = Registry()
        registry.add("python:bad", graph)
        self.executions = site.queue.executions(registry, pace=PACE)
        api = internal_api(site.queue, self.executions, ServiceAccess(secret=SECRET))
        self.client = site.client(api, "http://127.0.0.1:8000", Authorization=f"Bearer {SECRET}")

    async def open(self) -> None:
        account = await self.queue.accounts.create(owner="ann", name="main")
        await self.queue.accounts.credit(account.id, amount=10 * UNIT, key="first")
        grant = await self.queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:*"])
        self.account_id, self.grant_id = account.id, grant.id

    async def ask(self, key: str = "k", **body: Any) -> httpx2.Response:
        sent = {"execution_grant_id": self.grant_id, "input": {}, "max_cost": "1.00", **body}
        return await self.client.post(PATH, json=sent, headers={"Idempotency-Key": key})

    async def outcome(self, key: str = "k", **body: Any) -> tuple[str, str]:
        """Its error's code and text; asked again, it is the same, and money is exact."""
        first, second = await self.ask(key, **body), await self.ask(key, **body)
        assert (first.status_code, first.json()["ok"]) == (200, False), first.text
        assert second.content == first.content
        await self.require_exact()
        kept = await self.executions.get(first.json()["run_id"], owner="ann")
        return str(kept.error_code), str(kept.error_message)

    async def require_exact(self, *, charged: int | None = None) -> int:
        balance = (await self.queue.accounts.get(self.account_id, owner=None)).balance
        assert balance.held == 0
        assert balance.available + balance.charged == 10 * UNIT
        assert charged in (None, balance.charged)
        verdicts = [verdict async for verdict in self.queue.money_audit.verdicts()]
        assert [finding for verdict in verdicts for finding in verdict.findings] == []
        return balance.charged


async def abused(site: Site, graph: Any) -> Abused:
    service = Abused(site, graph)
    await service.open()
    return service


def spent(unit: str = "u", **figures: Any) -> GraphEvent:
    given = {"model": "gpt-4o", "input_tokens": 1_000, "output_tokens": 100, **figures}
    return GraphEvent(EventKind.USAGE, {"unit": unit}, ModelCall(unit=unit, **given))


class Odd(BaseException):
    """Not even an Exception."""


@pytest.mark.req("GRAPH-18", error=True)
@pytest.mark.parametrize(
    "other", [{"input": {"x": 1}}, {"max_cost": "2.00"}, {"on_crash": "rerun"}, {"timeout_ms": 5}, {"schedule_id": "s"}]
)
async def test_a_key_that_is_replayed_with_another_body_is_422_and_its_outcome_stays(
    quick_site: Site, other: dict[str, Any]
) -> None:
    calls: list[Any] = []

    async def graph(call: Any, tell: Any) -> dict[str, Any]:
        calls.append(call)
        tell(spent())
        return {}

    service = await abused(quick_site, graph)
    first = await service.ask()

    refused = await service.ask(**other)

    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert (await service.ask()).content == first.content
    assert len(calls) == 1
    assert await service.require_exact() > 0


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, Odd, asyncio.CancelledError])
@pytest.mark.parametrize("way", ["async", "plain", "generator", "async generator"])
async def test_whatever_a_graph_raises_is_its_own_failure_and_the_service_goes_on(
    quick_site: Site, kind: type[BaseException], way: str
) -> None:
    async def in_loop(tell: Any) -> None:
        tell(spent())
        await asyncio.sleep(0)
        raise kind("enough")

    def in_thread(tell: Any) -> None:
        tell(spent())
        raise kind("enough")

    def generating() -> Any:
        yield spent()
        raise kind("enough")

    async def generating_in_loop() -> Any:
        yield spent()
        raise kind("enough")

    ways = {"async": in_loop, "plain": in_thread, "generator": generating, "async generator": generating_in_loop}
    service = await abused(quick_site, ways[way])

    code, _ = await service.outcome()

    assert code == "graph_error"
    assert await service.require_exact() > 0
    assert (await service.outcome("another"))[0] == "graph_error"


async def test_a_result_of_fifty_megabytes_is_refused_and_what_it_cost_is_charged(site: Site) -> None:
    async def graph(tell: Any) -> str:
        tell(spent())
        return "x" * 50_000_000

    service = await abused(site, graph)

    code, said = await service.outcome()

    assert (code, "50000002 bytes" in said) == ("graph_result_invalid", True)
    assert await service.require_exact() > 0


async def test_a_graph_that_hangs_is_stopped_at_its_deadline(site: Site) -> None:
    async def graph(tell: Any) -> None:
        tell(spent())
        await asyncio.Event().wait()

    service = await abused(site, graph)

    code, said = await service.outcome(timeout_ms=300)

    assert (code, "300 ms" in said) == ("graph_timeout", True)
    assert await service.require_exact() > 0


@pytest.mark.parametrize("way", ["async", "plain"])
async def test_a_graph_that_ignores_cancellation_is_left_behind_and_may_spend_no_more(
    quick_site: Site, way: str
) -> None:
    released = threading.Event()

    async def in_loop(tell: Any, call: Any) -> None:
        tell(spent("before"))
        while not released.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    def in_thread(tell: Any, call: Any) -> None:
        tell(spent("before"))
        released.wait(60)
        tell(spent("after"))

    service = await abused(quick_site, in_loop if way == "async" else in_thread)
    try:
        code, said = await service.outcome(timeout_ms=300)
        charged = await service.require_exact()
    finally:
        released.set()

    assert (code, "300 ms" in said) == ("graph_timeout", True)
    await service.require_exact(charged=charged)


@pytest.mark.parametrize(
    "figures",
    [
        {"input_tokens": -5},
        {"output_tokens": -1},
        {"input_tokens": 10**30},
        {"input_tokens": float("nan")},
        {"output_tokens": float("inf")},
        {"input_tokens": "many"},
        {"input_tokens": True},
        {"cache_read_tokens": 5_000},
        {"cache_read_tokens": -5},
        {"model": "x" * 5_000},
        {"model": ""},
        {"model": 7},
        {"input_tokens": None},
    ],
)
async def test_usage_that_makes_no_sense_is_unmetered_and_never_billed_as_less_than_nothing(
    quick_site: Site, figures: dict[str, Any]
) -> None:
    async def graph(tell: Any) -> dict[str, Any]:
        tell(spent("good"))
        tell(spent("odd", **figures))
        return {}

    service = await abused(quick_site, graph)

    answer = await service.ask()

    assert answer.json()["ok"] is True, answer.text
    hold = await service.queue.money.get(answer.json()["run_id"], 1, owner=None)
    assert hold.unmetered == 1
    assert await service.require_exact(charged=hold.spent) > 0


@pytest.mark.parametrize("unit", ["", "a/b", "x" * 500, "a\0b", 7, None])
async def test_a_unit_that_cannot_be_kept_fails_the_run_by_name(quick_site: Site, unit: Any) -> None:
    async def graph(tell: Any) -> dict[str, Any]:
        tell(spent("good"))
        tell(spent(unit))
        return {}

    service = await abused(quick_site, graph)

    code, said = await service.outcome()

    assert (code, "unit" in said) == ("invalid_input", True)
    assert await service.require_exact() > 0


async def test_one_unit_with_two_figures_is_charged_once_and_said(quick_site: Site) -> None:
    async def graph(tell: Any) -> dict[str, Any]:
        tell(spent())
        tell(spent(output_tokens=999))
        return {}

    service = await abused(quick_site, graph)

    code, _ = await service.outcome()

    assert code == "receipt_differs"
    assert await service.require_exact() > 0


@pytest.mark.parametrize("way", ["plain", "async"])
async def test_a_graph_that_never_stops_telling_is_cut_off_and_piles_nothing_up(quick_site: Site, way: str) -> None:
    told, ended = [0], threading.Event()

    def in_thread() -> Any:
        try:
            while True:
                told[0] += 1
                yield {"n": told[0]}
        finally:
            ended.set()

    async def in_loop(tell: Any) -> None:
        try:
            while True:
                told[0] += 1
                tell(GraphEvent(EventKind.CUSTOM, {}))
                if told[0] % 1_000 == 0:
                    await asyncio.sleep(0)
        finally:
            ended.set()

    service = await abused(quick_site, in_thread if way == "plain" else in_loop)

    code, _ = await service.outcome()

    assert code == "graph_too_loud"
    assert await asyncio.to_thread(ended.wait, 60)
    assert told[0] < 200_000
