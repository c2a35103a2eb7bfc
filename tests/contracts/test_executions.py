"""One execution per key, on every store: whoever asks, however often, and whatever dies in between."""

import asyncio
from typing import Any, TypeVar

import pytest

from duly.bootstrap import Queue
from duly.domain.amounts import UNIT
from duly.domain.billing import HoldState
from duly.domain.errors import Unavailable
from duly.domain.executions import (
    Ended,
    EventKind,
    Execution,
    ExecutionStatus,
    GraphFailed,
    GraphResult,
    LeaseLost,
    ModelCall,
    OnCrash,
    UnknownExecution,
    UnknownGraph,
    WaitsFor,
)
from duly.domain.grants import GrantExpired, GrantRevoked, GrantTooNarrow, UnknownGrant
from duly.domain.instants import SECOND, Instant
from duly.domain.payloads import json_of, value_of
from duly.domain.requests import KeyReused, StillRunning
from duly.graphs.telling import Tell
from duly.ports.executions import Lease
from duly.ports.graphs import GraphCall, GraphEvent
from duly.ports.storage import Work
from tests.contracts.graphs import PatientClock, decide, house, service
from tests.contracts.world import ClockedStorage, World

T = TypeVar("T")


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


class Counter:
    """A graph that counts its calls, and stands at a gate if it is told to."""

    def __init__(self, answer: Any = None) -> None:
        self.calls: list[GraphCall] = []
        self.answer = {"n": 1} if answer is None else answer
        self.entered = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, call: GraphCall) -> Any:
        self.calls.append(call)
        self.entered.set()
        await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.req("GRAPH-18")
@pytest.mark.req("GRAPH-01")
async def test_the_same_request_has_its_stored_outcome_without_running_again(world: World) -> None:
    graph = Counter({"text": "news"})
    home = await house(world.queue, graph)
    request = home.asks(input={"topic": "ai", "model": "default", "messages": [{"role": "user", "content": "hi"}]})

    first = await home.executions.execute(request, ingress_request_id="req_7")
    world.clock.advance(86_400)
    second = await service(await world.another(), graph).execute(request)

    assert (first.ok, first.status, value_of(first.result or "null")) == (True, "done", {"text": "news"})  # type: ignore[arg-type]
    assert second == first
    (call,) = graph.calls
    assert (call.run_id, call.ingress_request_id, call.attempt) == (first.run_id, "req_7", 1)
    assert (call.model, call.messages) == ("default", [{"role": "user", "content": "hi"}])
    assert (call.caller.user, call.caller.account) == ("ann", home.account_id)
    assert call.caller.virtual_key_id.startswith("vkey_")


@pytest.mark.req("GRAPH-18")
@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (LookupError("no such town"), "graph_error", "LookupError: no such town"),
        (GraphFailed("the model is gone", error_code="model_gone"), "model_gone", "the model is gone"),
    ],
)
async def test_an_error_is_an_outcome_too_and_is_not_tried_again(
    world: World, error: Exception, code: str, says: str
) -> None:
    graph = Counter(error)
    home = await house(world.queue, graph)

    first = await home.executions.execute(home.asks())
    second = await home.executions.execute(home.asks())

    assert (first.ok, first.error_code, first.error_message) == (False, code, says)
    assert second == first
    assert len(graph.calls) == 1


@pytest.mark.req("GRAPH-18", error=True)
async def test_another_request_under_the_same_key_is_refused_while_it_runs_and_after(world: World) -> None:
    graph = Counter()
    graph.gate.clear()
    home = await house(world.queue, graph)
    other = home.asks(input={"topic": "other"})
    running = asyncio.create_task(home.executions.execute(home.asks()))
    await graph.entered.wait()

    with pytest.raises(KeyReused):
        await home.executions.execute(other)
    graph.gate.set()
    await running
    with pytest.raises(KeyReused):
        await home.executions.execute(other)
    assert len(graph.calls) == 1


@pytest.mark.req("GRAPH-18")
async def test_of_twenty_at_once_one_runs_and_the_others_are_told_when_to_ask_again(world: World) -> None:
    graph = Counter()
    graph.gate.clear()
    home = await house(world.queue, graph)
    services = [home.executions, service(await world.another(), graph)]
    asked = [asyncio.create_task(services[number % 2].execute(home.asks())) for number in range(20)]
    await graph.entered.wait()
    refused: set[asyncio.Task[Execution]] = set()
    running = set(asked)
    while len(refused) < 19:
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        refused |= done

    graph.gate.set()
    (last,) = running
    outcome = await last

    assert outcome.ok
    assert len(graph.calls) == 1
    errors = [task.exception() for task in refused]
    assert {(type(error), getattr(error, "retry_after_s", None)) for error in errors} == {(StillRunning, 40)}


@pytest.mark.req("GRAPH-13")
@pytest.mark.req("GRAPH-18")
async def test_when_its_holder_died_the_next_caller_takes_over_as_another_attempt_of_the_same_run(world: World) -> None:
    graph = Counter()
    home = await house(world.queue, graph)
    lost = await home.begins(home.asks())
    world.clock.advance(39.5)
    with pytest.raises(StillRunning) as refusal:
        await home.executions.execute(home.asks())
    assert refusal.value.retry_after_s == 1
    assert not graph.calls
    world.clock.advance(0.5)

    outcome = await service(await world.another(), graph).execute(home.asks())

    assert (outcome.ok, outcome.attempt, outcome.run_id) == (True, 2, lost.run_id)
    assert outcome.trace_id == lost.trace_id
    assert len(outcome.trace_id) == 32
    assert (graph.calls[0].attempt, graph.calls[0].continues) == (2, True)


async def test_a_reboot_frees_a_key_at_once_and_a_stepped_clock_frees_none(world: World) -> None:
    home = await house(world.queue, Counter())
    await home.begins(home.asks())
    world.clock.step(86_400)
    with pytest.raises(StillRunning):
        await home.executions.execute(home.asks())

    world.clock.reboot("another-boot")

    assert (await home.executions.execute(home.asks())).attempt == 2


@pytest.mark.req("GRAPH-05")
async def test_what_a_fenced_attempt_says_is_refused_and_what_it_spent_is_charged(world: World) -> None:
    home = await house(world.queue, Counter({"by": "the second"}))
    request = home.asks(max_cost=UNIT)
    fenced = await home.begins(request)
    world.clock.advance(40)
    outcome = await home.executions.execute(request)

    with pytest.raises(LeaseLost):
        await home.executions._finishing().finish(fenced.claim, Ended(ok=True))
    await world.queue.money.receipt(fenced.run_id, 1, "late", amount=300_000)

    assert await home.executions.execute(request) == outcome
    assert value_of(outcome.result or "null") == {"by": "the second"}  # type: ignore[arg-type]
    balance = (await world.queue.accounts.get(home.account_id, owner=None)).balance
    assert (balance.held, balance.charged) == (0, 300_000)
    assert (await world.queue.money.get(fenced.run_id, 1, owner=None)).state is HoldState.LAPSED


@pytest.mark.req("GRAPH-18", error=True)
@pytest.mark.parametrize("ok", [True, None], ids=["an end", "a question"])
async def test_a_fenced_attempt_neither_ends_nor_suspends_the_one_that_took_over(world: World, ok: bool | None) -> None:
    graph = Counter({"by": "the second"})
    graph.gate.clear()
    home = await house(world.queue, graph)
    fenced = await home.begins(home.asks())
    world.clock.advance(40)
    second = asyncio.create_task(home.executions.execute(home.asks()))
    await graph.entered.wait()

    with pytest.raises(LeaseLost):
        await home.executions._finishing().finish(fenced.claim, Ended(ok=ok, result=json_of({"q": 1}, field="result")))

    found = await home.executions.get(fenced.run_id, owner=None)
    assert (found.status, found.attempt, found.result) == (ExecutionStatus.RUNNING, 2, None)
    graph.gate.set()
    assert value_of((await second).result or "null") == {"by": "the second"}  # type: ignore[arg-type]


async def test_a_graph_that_takes_longer_than_its_lease_keeps_it(world: World) -> None:
    graph = Counter()
    graph.gate.clear()
    home = await house(world.queue, graph)
    elsewhere = service(await world.another(), Counter({"by": "somebody else"}))
    running = asyncio.create_task(home.executions.execute(home.asks()))
    await graph.entered.wait()
    (attempt,) = home.executions._attempts.values()
    for _ in range(12):
        known = attempt._safe_until
        world.clock.advance(10)
        while attempt._safe_until == known:  # noqa: ASYNC110 - it has renewed, and sleeps again
            await asyncio.sleep(0.01)

    with pytest.raises(StillRunning):
        await elsewhere.execute(home.asks())
    graph.gate.set()
    assert (await running).attempt == 1


async def test_an_attempt_that_gave_way_while_it_renewed_may_spend_nothing_more(world: World) -> None:
    graph = Counter()
    graph.gate.clear()
    home = await house(world.queue, graph)
    running = asyncio.create_task(home.executions.execute(home.asks()))
    await graph.entered.wait()
    (attempt,) = home.executions._attempts.values()
    renews = attempt._stands_until

    async def renews_too_late(lease: Lease) -> bool:
        stands = await renews(lease)
        attempt.give_way()
        return stands

    attempt._stands_until = renews_too_late  # type: ignore[method-assign]
    await attempt._renewed()

    with pytest.raises(LeaseLost):
        attempt.check_lease()
    with pytest.raises(StillRunning):
        await running


async def test_an_attempt_that_was_taken_over_stops_its_graph_and_says_nothing(world: World) -> None:
    stopped = asyncio.Event()
    entered = asyncio.Event()

    async def graph(call: GraphCall) -> None:
        call.check_lease()
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            try:
                call.check_lease()
            except LeaseLost:
                stopped.set()

    home = await house(world.queue, graph)
    running = asyncio.create_task(home.executions.execute(home.asks()))
    await entered.wait()
    await world.rows("UPDATE execution_requests SET token = 1")
    assert isinstance(world.clock, PatientClock)

    await world.clock.pass_slowly(12)

    async with asyncio.timeout(20):
        await stopped.wait()
        with pytest.raises(StillRunning):
            await running
    world.clock.advance(40)
    assert (await service(world.queue, Counter()).execute(home.asks())).attempt == 2


class Unreachable(ClockedStorage):
    is_away = False

    async def transact(self, work: Work[T], *, single: bool = False) -> T:
        if self.is_away:
            raise Unavailable("the store is away")
        return await super().transact(work, single=single)


async def test_an_attempt_that_cannot_renew_stops_its_graph_before_the_lease_runs_out(world: World) -> None:
    entered, stopped_at = asyncio.Event(), []

    async def graph() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped_at.append(world.clock.lease_now())

    storage = Unreachable(world.queue.storage, world.clock)
    home = await house(Queue.on(storage, world.dice, world.queue.settings), graph)
    began = world.clock.lease_now()
    running = asyncio.create_task(home.executions.execute(home.asks()))
    await entered.wait()
    storage.is_away = True
    assert isinstance(world.clock, PatientClock)

    await world.clock.pass_slowly(30)

    with pytest.raises(StillRunning):
        await running
    assert 20 * SECOND <= stopped_at[0] - began < 30 * SECOND


async def test_a_graph_that_hangs_is_stopped_at_its_deadline(world: World) -> None:
    entered = asyncio.Event()

    async def hang() -> None:
        entered.set()
        await asyncio.Event().wait()

    home = await house(world.queue, hang)
    running = asyncio.create_task(home.executions.execute(home.asks(timeout_ms=5_000)))
    await entered.wait()
    assert isinstance(world.clock, PatientClock)
    await world.clock.pass_slowly(6)

    outcome = await running

    assert (outcome.error_code, outcome.error_message) == ("graph_timeout", "the graph took longer than 5000 ms")


async def test_a_graph_that_does_not_stop_is_left_behind_and_its_outcome_kept(world: World) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def stubborn() -> Any:
        entered.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        yield GraphResult(output="too late")

    home = await house(world.queue, stubborn)
    running = asyncio.create_task(home.executions.execute(home.asks(timeout_ms=5_000)))
    await entered.wait()
    assert isinstance(world.clock, PatientClock)
    await world.clock.pass_slowly(20)

    outcome = await running

    release.set()
    assert outcome.error_code == "graph_timeout"
    assert "left behind" in str(outcome.error_message)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"not": {1, 2}}, "is a set, which JSON cannot say"),
        ("x" * 50_000_000, "50000002 bytes"),
        ({"n": float("nan")}, "which JSON cannot say"),
    ],
)
async def test_a_result_that_cannot_be_kept_is_a_clear_failure(world: World, answer: Any, says: str) -> None:
    home = await house(world.queue, Counter(answer))

    outcome = await home.executions.execute(home.asks())

    assert (outcome.ok, outcome.error_code) == (False, "graph_result_invalid")
    assert says in str(outcome.error_message)


async def test_events_are_kept_in_order_through_all_attempts_and_text_is_joined(world: World) -> None:
    async def graph(call: GraphCall, tell: Tell) -> Any:
        for word in ("a", "b", "c"):
            tell(GraphEvent(EventKind.TOKEN, {"text": word, "node": "n"}))
        tell(GraphEvent(EventKind.CUSTOM, {"value": call.attempt}))
        tell(GraphEvent(EventKind.LOG, {"odd": {1}}))
        tell(GraphEvent(EventKind.LOG, {"long": "x" * 100_000}))
        return GraphResult(waits=call.attempt == 1)

    home = await house(world.queue, graph)
    run_id = (await home.executions.execute(home.asks())).run_id
    await decide(world.queue, run_id, "approve")
    await home.executions.execute(home.asks())

    events = await home.executions.events(run_id, owner="ann")

    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert sorted({event.attempt for event in events}) == [1, 2]
    told = [(event.kind.value, value_of(event.data)) for event in events]
    assert "".join(data["text"] for kind, data in told if kind == "token") == "abcabc"
    assert [data["value"] for kind, data in told if kind == "custom"] == [1, 2]
    assert [list(data) for kind, data in told if kind == "log"] == [["left_out"]] * 4
    assert await home.executions.events(run_id, owner="ann", after=len(events) - 1) == events[-1:]
    with pytest.raises(UnknownExecution):
        await home.executions.events(run_id, owner="bob")
    with pytest.raises(UnknownExecution):
        await home.executions.get("exe_nowhere", owner=None)


@pytest.mark.req("GRAPH-05")
async def test_usage_is_charged_once_and_what_was_not_measured_is_seen(world: World) -> None:
    async def graph(tell: Tell) -> None:
        metered = ModelCall(unit="u1", model="gpt-4o", input_tokens=1_000, output_tokens=100)
        for call in (metered, metered, ModelCall(unit="u2", model="gpt-4o")):
            kind = EventKind.USAGE if call.is_metered else EventKind.UNMETERED
            tell(GraphEvent(kind, {"unit": call.unit}, call))

    home = await house(world.queue, graph)
    request = home.asks(input={"model": "gpt-4o"}, max_cost=2 * UNIT)

    outcome = await home.executions.execute(request)
    await home.executions.execute(request)

    assert outcome.ok, outcome.error_message
    hold = await world.queue.money.get(outcome.run_id, 1, owner=None)
    assert (hold.amount, hold.state, hold.unmetered) == (2 * UNIT, HoldState.SETTLED, 1)
    assert hold.spent > 0
    account = await world.queue.accounts.get(home.account_id, owner=None)
    assert (account.balance.held, account.balance.charged) == (0, hold.spent)


@pytest.mark.req("GRAPH-06", error=True)
@pytest.mark.parametrize(
    ("credit", "asked", "code"),
    [
        (UNIT, {"max_cost": 2 * UNIT}, "insufficient_credit"),
        (0, {"input": {"model": "gpt-4o"}}, "insufficient_credit"),
        (UNIT, {"input": {"model": "nobody-knows-it"}}, "unknown_price"),
        (UNIT, {"schedule_id": "nowhere"}, "unknown_schedule"),
    ],
)
async def test_what_cannot_be_paid_does_not_run_and_that_is_the_outcome(
    world: World, credit: int, asked: Any, code: str
) -> None:
    graph = Counter()
    home = await house(world.queue, graph, credit=credit)

    outcome = await home.executions.execute(home.asks(**asked))

    assert (outcome.ok, outcome.error_code) == (False, code)
    assert not graph.calls
    assert await home.executions.execute(home.asks(**asked)) == outcome


async def test_a_hundred_runs_on_a_balance_for_one_let_one_pass(world: World) -> None:
    graph = Counter()
    graph.gate.clear()
    home = await house(world.queue, graph, credit=UNIT)
    asked = [asyncio.create_task(home.executions.execute(home.asks(f"k{n}", max_cost=UNIT))) for n in range(100)]
    await graph.entered.wait()
    refused: set[asyncio.Task[Execution]] = set()
    running = set(asked)
    while len(refused) < 99:
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        refused |= done
    graph.gate.set()

    outcomes = [await task for task in asked]

    assert len(graph.calls) == 1
    assert sorted(str(each.error_code) for each in outcomes) == ["None", *["insufficient_credit"] * 99]


@pytest.mark.req("GRAPH-04", error=True)
@pytest.mark.parametrize("refusal", [GrantExpired, GrantRevoked, GrantTooNarrow, UnknownGrant])
async def test_a_grant_that_is_no_good_runs_nothing_and_leaves_the_key_free(
    world: World, refusal: type[Exception]
) -> None:
    graph = Counter()
    home = await house(world.queue, graph)
    soon = Instant(world.clock.now() + SECOND)
    made = await world.queue.grants.create(
        owner="ann",
        account_id=home.account_id,
        scopes=["graph:execute:python:other" if refusal is GrantTooNarrow else "graph:execute:python:g"],
        expires_at=soon if refusal is GrantExpired else None,
    )
    world.clock.advance(1)
    if refusal is GrantRevoked:
        await world.queue.grants.revoke(made.id, owner=None)
    grant_id = "grant_nowhere" if refusal is UnknownGrant else made.id

    with pytest.raises(refusal):
        await home.executions.execute(home.asks(grant_id=grant_id))

    assert not graph.calls
    assert await world.rows("SELECT count(*) FROM execution_requests") == [(0,)]


async def test_an_outcome_stays_known_when_the_grant_is_revoked(world: World) -> None:
    home = await house(world.queue, Counter())
    outcome = await home.executions.execute(home.asks())
    await world.queue.grants.revoke(home.grant_id, owner=None)

    assert await home.executions.execute(home.asks()) == outcome
    with pytest.raises(GrantRevoked):
        await home.executions.execute(home.asks("another"))


@pytest.mark.req("GRAPH-30", error=True)
async def test_a_graph_that_is_not_here_leaves_the_key_free(world: World) -> None:
    home = await house(world.queue, Counter())

    with pytest.raises(UnknownGraph):
        await home.executions.execute(home.asks(graph_id="python:other"))

    assert await world.rows("SELECT count(*) FROM execution_requests") == [(0,)]


async def test_a_crash_is_asked_about_if_that_was_wanted(world: World) -> None:
    graph = Counter()
    home = await house(world.queue, graph)
    request = home.asks(on_crash=OnCrash.ASK)
    lost = await home.begins(request)
    world.clock.advance(40)

    asked = await home.executions.execute(request)

    assert (asked.status, asked.waits_for, asked.ok) == (ExecutionStatus.WAITING, WaitsFor.CRASH, None)
    assert await home.executions.execute(request) == asked
    assert not graph.calls
    await decide(world.queue, lost.run_id, "approve")
    went_on = await home.executions.execute(request)
    assert (went_on.ok, went_on.attempt) == (True, 2)


@pytest.mark.parametrize(("on_crash", "continues"), [(OnCrash.RERUN, False), (OnCrash.RESUME, True)])
async def test_a_crashed_run_starts_afresh_or_goes_on_as_was_wanted(
    world: World, on_crash: OnCrash, continues: bool
) -> None:
    graph = Counter()
    home = await house(world.queue, graph)
    await home.begins(home.asks(on_crash=on_crash))
    world.clock.advance(40)

    await home.executions.execute(home.asks(on_crash=on_crash))

    assert [call.continues for call in graph.calls] == [continues]


async def test_a_graph_that_asks_waits_for_a_decision_and_goes_on_with_it(world: World) -> None:
    calls: list[GraphCall] = []

    async def graph(call: GraphCall) -> Any:
        calls.append(call)
        if call.reply is None:
            return GraphResult(output={"interrupts": [{"id": "q1", "value": "publish?"}]}, waits=True)
        return {"replied": call.reply.value}

    home = await house(world.queue, graph)
    request = home.asks(max_cost=UNIT)
    waiting = await home.executions.execute(request)
    assert (waiting.status, waiting.waits_for, waiting.ok) == (ExecutionStatus.WAITING, WaitsFor.REVIEW, None)
    assert (await world.queue.accounts.get(home.account_id, owner=None)).balance.held == 0
    world.clock.advance(86_400)
    assert (await service(await world.another(), graph).execute(request)).status is ExecutionStatus.WAITING

    await decide(world.queue, waiting.run_id, "edit", {"yes": True})
    outcome = await home.executions.execute(request)

    assert value_of(outcome.result or "null") == {"replied": {"yes": True}}  # type: ignore[arg-type]
    assert (outcome.attempt, calls[1].continues) == (2, True)
    assert calls[1].reply is not None
    assert calls[1].reply.answers == {"q1": {"yes": True}}


async def test_rejecting_ends_what_waits(world: World) -> None:
    home = await house(world.queue, Counter(GraphResult(output={}, waits=True)))
    waiting = await home.executions.execute(home.asks())

    review = await decide(world.queue, waiting.run_id, "reject", note="not today")

    rejected = await home.executions.execute(home.asks())
    assert (rejected.ok, rejected.error_code) == (False, "rejected")
    assert rejected.error_message == f"review {review.id} was rejected by ann: not today"


async def test_whoever_stops_waiting_does_not_stop_the_graph(world: World) -> None:
    graph = Counter()
    graph.gate.clear()
    home = await house(world.queue, graph)
    caller = asyncio.create_task(home.executions.execute(home.asks()))
    await graph.entered.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    running = set(home.executions._running)
    graph.gate.set()

    await asyncio.gather(*running)

    assert (await home.executions.execute(home.asks())).ok
    assert len(graph.calls) == 1


async def test_a_service_that_closes_leaves_what_ran_to_whoever_comes_next(world: World) -> None:
    graph = Counter()
    graph.gate.clear()
    home = await house(world.queue, graph)
    caller = asyncio.create_task(home.executions.execute(home.asks()))
    await graph.entered.wait()

    await home.executions.close()

    with pytest.raises(asyncio.CancelledError):
        await caller
    graph.gate.set()
    world.clock.advance(40)
    assert (await service(world.queue, graph).execute(home.asks())).attempt == 2


@pytest.mark.req("GRAPH-20")
async def test_executing_writes_nothing_of_the_ledgers(world: World) -> None:
    home = await house(world.queue, Counter())
    tables = ("schedule_runs", "schedules", "schedule_revisions", "jobs", "finished_jobs")
    before = {table: await world.rows(f"SELECT * FROM {table}") for table in tables}

    await home.executions.execute(home.asks())

    assert {table: await world.rows(f"SELECT * FROM {table}") for table in tables} == before


async def test_cancelling_stops_the_graph_here_at_once_and_that_is_the_outcome(world: World) -> None:
    entered, stopped = asyncio.Event(), asyncio.Event()

    async def graph(tell: Tell) -> None:
        call = ModelCall(unit="u1", model="gpt-4o", input_tokens=1_000, output_tokens=100)
        tell(GraphEvent(EventKind.USAGE, {}, call))
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    home = await house(world.queue, graph)
    request = home.asks(max_cost=UNIT)
    running = asyncio.create_task(home.executions.execute(request))
    await entered.wait()
    while not (await world.rows("SELECT count(*) FROM charge_receipts"))[0][0]:  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(0.01)

    cancelled = await home.executions.cancel("k", "no longer wanted")

    async with asyncio.timeout(20):
        await stopped.wait()
        outcome = await running
    assert outcome == cancelled
    assert (outcome.ok, outcome.error_code, outcome.error_message) == (False, "cancelled", "no longer wanted")
    assert await home.executions.cancel("k", "again") == cancelled
    balance = (await world.queue.accounts.get(home.account_id, owner=None)).balance
    assert (balance.held, balance.charged > 0) == (0, True)
    with pytest.raises(UnknownExecution):
        await home.executions.cancel("k", "another graph's", graph_id="python:other")
    with pytest.raises(UnknownExecution):
        await home.executions.cancel("nothing", "why not")


async def test_cancelling_from_elsewhere_stops_the_graph_when_it_renews_its_lease(world: World) -> None:
    stopped = asyncio.Event()
    graph = Counter()
    graph.gate.clear()

    async def stoppable(call: GraphCall) -> None:
        try:
            await graph(call)
        finally:
            stopped.set()

    home = await house(world.queue, stoppable)
    running = asyncio.create_task(home.executions.execute(home.asks()))
    await graph.entered.wait()
    await service(await world.another(), graph).cancel("k", "no longer wanted")
    assert isinstance(world.clock, PatientClock)

    await world.clock.pass_slowly(12)

    async with asyncio.timeout(20):
        await stopped.wait()
        assert (await running).error_code == "cancelled"
