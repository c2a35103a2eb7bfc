"""`duly run events` and `duly run watch`: what a run's graph told, in the shell."""

import asyncio
import json
from typing import Any

import pytest

from duly.bootstrap import Queue, Registry, Settings
from duly.domain.executions import EventKind
from duly.domain.ids import PoolName
from duly.ports.graphs import GraphEvent
from tests.commands.conftest import Shell


async def chatty(call: Any, tell: Any) -> dict[str, Any]:
    tell(GraphEvent(EventKind.TOKEN, {"text": "hello"}))
    for number in range(2, 131):
        tell(GraphEvent(EventKind.UPDATE, {"n": number}))
    if call.input.get("fails"):
        raise LookupError("no such town")
    return {}


@pytest.fixture
def ran(shell: Shell, database_url: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The id of a run that has ended."""
    fails = bool(getattr(request, "param", False))

    async def run() -> str:
        queue = await Queue.open(Settings(database_url=database_url))
        registry = Registry()
        registry.add("python:chatty", chatty)
        account = await queue.accounts.create(owner="local", name="main")
        grant = await queue.grants.create(owner="local", account_id=account.id, scopes=["graph:execute:*"])
        handler = queue.graph_runs(registry)
        given = {"graph_id": "python:chatty", "grant_id": grant.id, "input": {"fails": fails}}
        shell_input = json.dumps(given)
        await asyncio.to_thread(
            shell, "schedule", "add", "g", "--every", "1h", "--target", "graph.run", "--input", shell_input
        )
        triggered = await queue.schedules.run_now("g", owner="local")
        worker = queue.worker(handlers={"graph.run": handler}, pools={PoolName("default"): 1}, name="beside")
        working = asyncio.create_task(worker.run())
        while not (await queue.runs.get(triggered.id, owner=None)).status.is_terminal:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        worker.stop()
        await working
        await handler.close()
        await queue.close()
        return str(triggered.id)

    shell("--version")  # into its folder, before anything is opened
    return asyncio.run(run())


def test_events_are_shown_in_pages(shell: Shell, ran: str) -> None:
    said = shell("run", "events", ran)
    lines = said.out.splitlines()

    assert (said.code, len(lines), said.err) == (0, 100, "there may be more: --after 100\n")
    assert lines[0].split(maxsplit=1)[1] == "    1 token     hello".strip()
    assert lines[1].endswith('update    {"n": 2}')
    rest = [json.loads(line) for line in shell("run", "events", ran, "--after", "100", "--json").out.splitlines()]
    assert [each["seq"] for each in rest] == list(range(101, 131))
    assert shell("run", "events", ran, "--after", "130").err == "no events\n"


@pytest.mark.parametrize(("ran", "code", "end"), [(False, 0, "success"), (True, 1, "error")], indirect=["ran"])
def test_watching_tells_all_of_it_and_how_it_ended(shell: Shell, ran: str, code: int, end: str) -> None:
    said = shell("run", "watch", ran)

    assert said.code == code
    assert (len(said.out.splitlines()), said.out.splitlines()[-1]) == (131, f"{ran} ended: {end}")


@pytest.mark.store("sqlite")
@pytest.mark.parametrize("command", ["events", "watch"])
def test_a_run_that_is_not_there_is_not_found(here: Shell, command: str) -> None:
    here("schedule", "add", "a", "--every", "1h", "--target", "t")

    assert here("run", command, "run_nowhere").code == 3


@pytest.mark.req("GRAPH-31")
def test_a_run_is_shown_with_the_way_to_its_trace(shell: Shell, ran: str) -> None:
    trace_id = json.loads(shell("run", "show", ran, "--json").out)["trace_id"]

    said = shell("run", "show", ran, DULY_TRACE_URL="https://traces.example/{trace_id}")

    assert f"its trace: https://traces.example/{trace_id}\n" in said.out
