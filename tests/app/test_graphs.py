"""Declared graphs on both stores: each slot is executed once, under a grant, and its row names the execution."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duly import Duly, InvalidInput, JobFailed, Settings, every
from duly.domain.amounts import UNIT
from duly.domain.instants import SECOND
from duly.domain.reviews import Review
from duly.domain.runs import Run, RunStatus
from duly.domain.schedules import ScheduleState

DAILY = every("1d")


async def ended(app: Duly, run: Run) -> Run:
    return await until(app, run, lambda found: found.status.is_terminal)


async def until(app: Duly, run: Run, holds: Callable[[Run], bool]) -> Run:
    while not holds(found := await app.queue.runs.get(run.id, owner=None)):  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(0.02)
    return found


async def asked(app: Duly) -> Review:
    while not (found := await app.reviews.list()):  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(0.02)
    return found[0]


async def greet(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return {"greeting": f"hello {input['name']}"}


@pytest.mark.req("GRAPH-01")
@pytest.mark.req("GRAPH-04")
@pytest.mark.req("GRAPH-13")
@pytest.mark.req("GRAPH-20")
@pytest.mark.req("GRAPH-31")
async def test_a_run_is_executed_under_its_grant_and_its_row_names_the_execution(app: Duly) -> None:
    assert app.graph("hello", greet, schedule=DAILY, input={"name": "ann"}) == "python:hello"

    async with app.running():
        run = await app.trigger("hello")
        assert run.run_id is None
        row = await ended(app, run)

        assert row.status is RunStatus.SUCCESS, row.error_message
        assert row.run_id is not None
        assert row.run_id.startswith("exe_")
        assert row.run_id != row.id
        assert len(row.trace_id or "") == 32
        grant = await app.queue.grants.of_schedule("hello", owner="local")
        assert grant is not None
        assert grant.scopes == ("graph:execute:python:hello",)
        assert (await app.result(run))["run_id"] == row.run_id


async def test_a_program_that_starts_again_keeps_its_grant_and_its_schedule(database_url: str) -> None:
    seen = []
    for _ in range(2):
        app = Duly(settings=Settings(database_url=database_url))
        app.graph("hello", greet, schedule=DAILY, input={"name": "ann"}, max_cost="0.50")
        async with app:
            schedule = (await app.schedules())[0]
            grants = await app.queue.grants.list(owner="local")
            seen.append((schedule.revision, schedule.target.payload, [grant.id for grant in grants]))

    assert seen[0] == seen[1]
    assert '"max_cost":"0.50"' in seen[0][1]


@pytest.mark.req("GRAPH-32")
@pytest.mark.req("GRAPH-32", error=True)
@pytest.mark.req("GRAPH-04", error=True)
async def test_a_revoked_grant_runs_nothing_and_closes_the_row_with_the_reason(app: Duly) -> None:
    called = []

    async def graph() -> None:
        called.append(1)

    app.graph("hello", graph, schedule=DAILY)
    async with app.running():
        grant = await app.queue.grants.of_schedule("hello", owner="local")
        assert grant is not None
        await app.queue.grants.revoke(grant.id, owner="local")

        row = await ended(app, await app.trigger("hello"))

        assert row.status is RunStatus.ERROR
        assert str(row.error_message).startswith(f"grant_revoked: grant {grant.id} was revoked at")
        assert (row.run_id, called) == (None, [])
        assert [each.attempt for each in await app.queue.runs.attempts(row.id, owner=None)] == [1]


async def test_a_graph_that_fails_fails_its_run_once(app: Duly) -> None:
    called = []

    def graph() -> None:
        called.append(1)
        raise LookupError("no such town")

    app.graph("hello", graph, schedule=DAILY)
    async with app.running():
        run = await app.trigger("hello")
        with pytest.raises(JobFailed, match="graph_error"):
            await app.result(run)
        row = await ended(app, run)

    assert (row.status, called) == (RunStatus.ERROR, [1])
    assert row.run_id is not None


async def test_what_cannot_be_paid_is_not_run(app: Duly) -> None:
    app.graph("hello", greet, schedule=DAILY, input={"name": "ann"}, max_cost="0.50")
    async with app.running():
        refused = await ended(app, await app.trigger("hello"))
        account = (await app.queue.accounts.list(owner="local"))[0]
        await app.queue.accounts.credit(account.id, amount=UNIT, key="first")
        paid = await ended(app, await app.trigger("hello"))

    assert str(refused.error_message).startswith("insufficient_credit")
    assert paid.status is RunStatus.SUCCESS


@pytest.mark.req("OWN-03")
async def test_a_schedule_that_is_over_its_budget_is_skipped_and_says_so(app: Duly) -> None:
    app.graph("hello", greet, schedule=DAILY, input={"name": "ann"}, max_cost="0.50")
    async with app.running():
        account = (await app.queue.accounts.list(owner="local"))[0]
        await app.queue.accounts.credit(account.id, amount=10 * UNIT, key="first")
        await app.queue.budgets.set("schedule", "hello", owner="local", window="day", limit=UNIT // 4)

        row = await ended(app, await app.trigger("hello"))

        assert row.status is RunStatus.SKIPPED
        (budget,) = await app.queue.budgets.list(owner="local")
        assert str(row.detail).startswith(f"over_budget: budget {budget.id}: schedule hello may spend 0.25 a day")
        assert row.run_id is not None
        assert (await app.queue.schedules.get("hello", owner="local")).state is ScheduleState.ACTIVE


@pytest.mark.req("OWN-03", error=True)
async def test_a_budget_that_pauses_pauses_the_schedule_with_the_outcome(app: Duly) -> None:
    app.graph("hello", greet, schedule=DAILY, input={"name": "ann"}, max_cost="0.50")
    async with app.running():
        account = (await app.queue.accounts.list(owner="local"))[0]
        await app.queue.accounts.credit(account.id, amount=10 * UNIT, key="first")
        budget = await app.queue.budgets.set(
            "schedule", "hello", owner="local", window="day", limit=UNIT // 4, on_exceeded="pause"
        )

        row = await ended(app, await app.trigger("hello"))
        schedule = await app.queue.schedules.get("hello", owner="local")

        assert row.status is RunStatus.SKIPPED
        assert (schedule.state, schedule.revision) == (ScheduleState.PAUSED, 2)
        assert str(schedule.state_reason).startswith(f"over_budget: budget {budget.id}: ")
        why = await app.queue.why.schedule(schedule.id)
        assert any(budget.id in sentence and "paused" in sentence for sentence in why.sentences)
        await ended(app, await app.trigger("hello"))
        assert (await app.queue.schedules.get("hello", owner="local")).revision == 2, "it is paused already"
        await app.resume("hello")
        await app.queue.budgets.delete(budget.id, owner="local")
        assert (await ended(app, await app.trigger("hello"))).status is RunStatus.SUCCESS


async def test_a_run_that_asks_goes_on_once_somebody_has_decided(app: Duly) -> None:
    app.graph("reviewed", "tests.adapters.graphs.news:reviewed", schedule=DAILY, input={"topic": "ai"})
    async with app.running():
        run = await app.trigger("reviewed")
        review = await asked(app)
        assert review.question == '{"publish":"news of ai"}'
        assert not (await app.queue.runs.get(run.id, owner=None)).status.is_terminal
        await app.reviews.edit(review.id, {"by": "ann"})

        row = await ended(app, run)
        executions = app.queue.executions(app._register.found_at)

        assert row.status is RunStatus.SUCCESS, row.error_message
        execution = await executions.get(row.run_id or "", owner="local")
        assert execution.attempt == 2
        assert "news of ai (ann)" in str(execution.result)


@pytest.mark.req("GRAPH-29")
async def test_a_run_that_waits_leaves_its_place_to_others_and_rejected_it_is_cancelled(app: Duly) -> None:
    app.graph("reviewed", "tests.adapters.graphs.news:reviewed", schedule=DAILY, input={"topic": "ai"})
    app.graph("hello", greet, schedule=DAILY, input={"name": "ann"})
    app.pool("graphs", limit=1)
    async with app.running():
        run = await app.trigger("reviewed")
        review = await asked(app)

        assert (await ended(app, await app.trigger("hello"))).status is RunStatus.SUCCESS
        why = await app.queue.why.slot(run.schedule_id, run.scheduled_for // SECOND)
        assert any(f"It waits for review {review.id} until" in each for each in why.sentences)
        assert (await app.queue.runs.get(run.id, owner=None)).attempt_count == 0
        await app.reviews.reject(review.id, note="not today", by="bob")

        row = await ended(app, run)

        assert (row.status, str(row.detail).partition(":")[0]) == (RunStatus.CANCELLED, "rejected")
        assert (await app.reviews.get(review.id)).decided_by == "bob"
        assert await app.reviews.list() == []


@pytest.mark.req("GRAPH-29")
async def test_cancelling_a_run_that_waits_withdraws_its_review(app: Duly) -> None:
    app.graph("reviewed", "tests.adapters.graphs.news:reviewed", schedule=DAILY, input={"topic": "ai"})
    async with app.running():
        run = await app.trigger("reviewed")
        review = await asked(app)
        await app.queue.runs.cancel(run.id, owner="local", reason="no longer wanted")

        assert (await ended(app, run)).status is RunStatus.CANCELLED
        while (await app.reviews.get(review.id)).is_open:  # noqa: ASYNC110 - the worker may have had it yet
            await asyncio.sleep(0.02)


@pytest.mark.req("OWN-03")
async def test_a_schedule_whose_budget_asks_waits_and_is_skipped_if_it_is_rejected(app: Duly) -> None:
    app.graph("hello", greet, schedule=DAILY, input={"name": "ann"}, max_cost="0.50")
    async with app.running():
        account = (await app.queue.accounts.list(owner="local"))[0]
        await app.queue.accounts.credit(account.id, amount=10 * UNIT, key="first")
        await app.queue.budgets.set("schedule", "hello", owner="local", window="day", limit=1, on_exceeded="ask")
        refused = await app.trigger("hello")
        await app.reviews.reject((await asked(app)).id)
        assert (await ended(app, refused)).status is RunStatus.SKIPPED
        allowed = await app.trigger("hello")
        await app.reviews.approve((await asked(app)).id)

        assert (await ended(app, allowed)).status is RunStatus.SUCCESS


@pytest.mark.req("GRAPH-14")
async def test_cancelling_a_run_stops_its_graph(app: Duly) -> None:
    entered, stopped = asyncio.Event(), asyncio.Event()

    async def graph() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    app.graph("hello", graph, schedule=DAILY)
    async with app.running():
        run = await app.trigger("hello")
        await entered.wait()
        await app.queue.runs.cancel(run.id, owner="local", reason="no longer wanted")

        row = await ended(app, run)

        async with asyncio.timeout(30):
            await stopped.wait()
        assert row.status is RunStatus.CANCELLED


async def test_a_slot_that_fires_is_executed_once(app: Duly) -> None:
    keys = []

    async def graph(call: Any) -> None:
        keys.append(call.run_id)
        if len(keys) == 2:
            app.stop()

    app.graph("tick", graph, schedule=every("1s"), overlap="queue")
    await app.run()

    assert len(set(keys)) == len(keys)
    async with app:
        rows = await app.queue.runs.list(owner=None)
        assert {row.run_id for row in rows if row.run_id} >= set(keys[:2])


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_cost": 0.5},
        {"on_crash": "panic"},
        {"overlap": "skip"},
        {"schedule": DAILY, "overlop": "skip"},
        {"schedule": "1h"},
        {"input": {"a": {1}}},
        {"timeout": "2d"},
        {"review_default": "perhaps"},
        {"review_default": "edit"},
        {"review_value": 1},
        {"review_within": "2y"},
    ],
)
def test_what_means_nothing_is_refused_where_it_is_declared(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Duly(":memory:").graph("hello", greet, **wrong)


def test_two_graphs_of_one_name_are_refused() -> None:
    app = Duly(":memory:")
    app.graph("hello", greet)
    with pytest.raises(InvalidInput, match="registered already"):
        app.graph("hello", greet)


WORKER = """
import asyncio, sys
from duly import Duly, every
app = Duly()
app.graph("langgraph:news", "tests.adapters.graphs.news:news", schedule=every("1d"), input={"topic": "ai"})
async def main():
    async with app.running():
        run = await app.trigger("langgraph:news")
        while not (found := await app.queue.runs.get(run.id, owner=None)).status.is_terminal:
            await asyncio.sleep(0.05)
        print(found.status, [name for name in ("langgraph", "langchain_core") if name in sys.modules])
asyncio.run(main())
"""
PROGRAM = """
from duly import Duly, every
app = Duly()
app.graph("langgraph:news", "tests.adapters.graphs.news:news", schedule=every("1d"), input={"topic": "ai"})
"""


@pytest.mark.req("GRAPH-16")
@pytest.mark.store("sqlite")
def test_a_running_worker_has_no_graph_library_loaded_and_a_service_elsewhere_has(tmp_path: Path) -> None:
    """`duly serve --app` is the service; the worker asks it over a socket."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(["src", "."]),
        "DULY_INTERNAL_API_TOKEN": "a secret that two services share, 32 bytes",
        "DULY_DATABASE_URL": str(tmp_path / "duly.db"),
    }
    serve = [sys.executable, "-m", "duly", "serve", "--app", str(tmp_path / "program.py"), "--port", "0"]
    with subprocess.Popen(serve, env=environment, stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stderr is not None
            url = next(line for line in service.stderr if line.startswith("serving ")).split()[1].rstrip(";")
            asked = {**environment, "DULY_INTERNAL_API_URL": url}
            worker = [sys.executable, "-c", WORKER]
            done = subprocess.run(worker, env=asked, capture_output=True, text=True, timeout=120, check=False)
        finally:
            service.terminate()
            service.communicate()

    assert done.stdout == "success []\n", done.stderr
    assert service.returncode == 0


def test_a_service_without_a_token_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    environment["DULY_DATABASE_URL"] = str(tmp_path / "duly.db")
    serve = [sys.executable, "-m", "duly", "serve", "--app", str(tmp_path / "program.py"), "--port", "0"]

    done = subprocess.run(serve, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 2
    assert "DULY_INTERNAL_API_TOKEN" in done.stderr
