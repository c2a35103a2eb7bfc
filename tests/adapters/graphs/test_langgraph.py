"""LangGraph's graphs: events, usage and checkpoints of real ones, on a model that needs no network."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from duly.application.checkpoints import Checkpoints
from duly.bootstrap import Queue
from duly.domain.executions import Execution, ExecutionStatus, GraphFailed, GraphResult, LeaseLost, Reply
from duly.domain.instants import Instant, Micros
from duly.domain.payloads import EMPTY
from duly.graphs.langgraph import LangGraphs
from duly.ports.storage import Storage
from duly.settings import Settings
from duly.storage.sqlite.storage import SqliteStorage
from duly.system.dice import SystemDice
from tests.adapters.graphs import news
from tests.adapters.graphs.calls import call_of, run, told

pytestmark = pytest.mark.store("sqlite")
TOKEN = 7


def on_a_store(scenario: Callable[[Storage], Awaitable[None]]) -> None:
    """With a running execution, whose checkpoints these are."""

    async def go() -> None:
        storage = await SqliteStorage.open(":memory:")
        try:
            queue = Queue.on(storage, SystemDice(), Settings(database_url=":memory:"))
            account = await queue.accounts.create(owner="ann", name="main")
            grant = await queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:*"])
            await storage.transact(lambda tx: tx.executions.add(_running(grant.id)))
            await scenario(storage)
        finally:
            await storage.close()

    asyncio.run(go())


def _running(grant_id: str) -> Execution:
    return Execution(
        key="k",
        request_hash="h",
        request=EMPTY,
        graph_id="langgraph:g",
        grant_id=grant_id,
        run_id="exe_1",
        trace_id="t",
        status=ExecutionStatus.RUNNING,
        token=TOKEN,
        era="e",
        expires_at=Micros(1),
        created_at=Instant(1),
    )


def asked(**given: Any) -> Any:
    return call_of("langgraph:g", token=TOKEN, **given)


@pytest.mark.req("GRAPH-30")
@pytest.mark.parametrize("found_at", ["tests.adapters.graphs.news:news", news.news(), news.news().compile()])
def test_a_graph_streams_what_it_does_and_what_its_model_used(found_at: Any) -> None:
    async def scenario(storage: Storage) -> None:
        events, result = await run(LangGraphs(Checkpoints(storage)), found_at, asked(input={"topic": "ai"}))

        assert result == GraphResult(output={"topic": "ai", "text": "news of ai.", "steps": ["write", "sign"]})
        kinds = [event.kind.value for event in events]
        assert "".join(event.data["text"] for event in events if event.kind == "token") == "news of ai"
        assert ("custom", {"value": {"wrote": "ai"}}) in told(events)
        assert ("update", {"middle": {"text": "news of ai.", "steps": ["sign"]}}) in told(events)
        usage = [event.model_call for event in events if event.model_call]
        assert [(each.model, each.input_tokens, each.output_tokens) for each in usage] == [("offline:echo", 1, 3)]
        assert len(usage[0].unit) == 36
        assert kinds.index("usage") < kinds.index("update")
        assert kinds.count("log") == 4

    on_a_store(scenario)


@pytest.mark.req("GRAPH-30", error=True)
def test_a_model_call_without_figures_is_told_as_unmetered() -> None:
    async def scenario(storage: Storage) -> None:
        graph = news.news(metered=False)
        events, _ = await run(LangGraphs(Checkpoints(storage)), graph, asked(input={"topic": "ai"}))

        calls = [event for event in events if event.model_call]
        assert [(event.kind.value, event.data["model"]) for event in calls] == [("unmetered", "offline:echo")]
        assert not calls[0].model_call or not calls[0].model_call.is_metered

    on_a_store(scenario)


def test_messages_go_in_and_come_out_as_json() -> None:
    async def scenario(storage: Storage) -> None:
        call = asked(messages=[{"role": "user", "content": "hello there"}])
        _, result = await run(LangGraphs(Checkpoints(storage)), "tests.adapters.graphs.news:chat", call)

        said = [(each["type"], each["content"]) for each in result.output["messages"]]
        assert said == [("human", "hello there"), ("ai", "hello there")]

    on_a_store(scenario)


def test_a_graph_that_asks_waits_and_goes_on_where_it_asked() -> None:
    async def scenario(storage: Storage) -> None:
        provider = LangGraphs(Checkpoints(storage))
        news.entered.clear()
        events, first = await run(provider, news.reviewed(), asked(input={"topic": "ai"}))
        assert first.waits
        assert first.output["interrupts"][0]["value"] == {"publish": "news of ai"}
        assert [event.data["value"] for event in events if event.kind == "interrupt"] == [{"publish": "news of ai"}]

        other = asked(attempt=2, continues=True, reply=Reply({"another question": {"by": "bob"}}))
        _, unanswered = await run(provider, news.reviewed(), other)
        assert unanswered.waits

        answered = Reply({first.output["interrupts"][0]["id"]: {"by": "ann"}})
        replied = asked(input={"topic": "ai"}, attempt=3, continues=True, reply=answered)
        _, second = await run(provider, news.reviewed(), replied)

        assert (second.waits, second.output["text"]) == (False, "news of ai (ann)")
        assert news.entered == ["write", "review", "review", "review"]

    on_a_store(scenario)


def test_an_attempt_that_takes_over_does_not_repeat_what_was_done() -> None:
    async def scenario(storage: Storage) -> None:
        provider, fails = LangGraphs(Checkpoints(storage)), True

        def middle(state: news.News) -> news.News:
            if fails:
                raise ConnectionError("cut")
            return {"text": state["text"].upper()}

        news.entered.clear()
        with pytest.raises(ConnectionError):
            await run(provider, news.news(middle=middle), asked(input={"topic": "ai"}))
        fails = False

        again = asked(input={"topic": "ai"}, attempt=2, continues=True)
        _, result = await run(provider, news.news(middle=middle), again)

        assert result.output["text"] == "NEWS OF AI"
        assert news.entered == ["write"]

    on_a_store(scenario)


def test_what_is_asked_to_go_on_and_left_nothing_starts_afresh() -> None:
    async def scenario(storage: Storage) -> None:
        call = asked(input={"topic": "ai"}, attempt=2, continues=True)
        _, result = await run(LangGraphs(Checkpoints(storage)), news.news(), call)

        assert result.output["text"] == "news of ai."

    on_a_store(scenario)


def test_a_fenced_attempt_leaves_no_checkpoint() -> None:
    async def scenario(storage: Storage) -> None:
        call = call_of("langgraph:g", token=TOKEN - 1, input={"topic": "ai"})
        news.entered.clear()
        with pytest.raises(LeaseLost):
            await run(LangGraphs(Checkpoints(storage)), news.news(), call)

        assert news.entered == []

    on_a_store(scenario)


def test_a_model_is_asked_for_by_name_before_it_is_called() -> None:
    named = []

    def lost(model: str | None) -> None:
        named.append(model)
        raise LeaseLost("exe_1", 1)

    async def scenario(storage: Storage) -> None:
        heard: list[Any] = []
        with pytest.raises(LeaseLost):
            heard, _ = await run(
                LangGraphs(Checkpoints(storage)), news.news(), asked(input={"topic": "ai"}, check_model=lost)
            )
        assert (heard, named) == ([], ["offline:echo"])

    on_a_store(scenario)


def test_what_is_no_graph_is_refused() -> None:
    async def scenario(storage: Storage) -> None:
        with pytest.raises(GraphFailed, match="no graph of LangGraph's"):
            await run(LangGraphs(Checkpoints(storage)), dict, asked())

    on_a_store(scenario)
