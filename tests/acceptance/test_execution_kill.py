"""An execution service that is killed in the middle of a graph: the next one takes over, and nothing is paid twice."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from duly.application.attempts import AttemptPace
from duly.application.executions import Executions
from duly.bootstrap import Queue, Registry, Settings
from duly.domain.amounts import UNIT
from duly.domain.executions import EventKind, Execution, ExecutionEvent, ExecutionRequest, ModelCall
from duly.domain.instants import SECOND, Micros
from duly.domain.requests import StillRunning
from duly.graphs.telling import Tell
from duly.ports.graphs import GraphCall, GraphEvent

PACE = AttemptPace(lease=Micros(4 * SECOND), grace=Micros(SECOND // 2))
HANGING = """
import asyncio, sys
from tests.acceptance.test_execution_kill import PACE, asked, hanging, service
async def main():
    place, grant_id = sys.argv[1:]
    queue, executions = await service(place, hanging)
    await executions.execute(asked(grant_id))
asyncio.run(main())
"""


async def service(place: str, graph: object) -> tuple[Queue, Executions]:
    queue = await Queue.open(Settings(database_url=place))
    registry = Registry()
    registry.add("python:g", graph)
    return queue, queue.executions(registry, pace=PACE)


def asked(grant_id: str) -> ExecutionRequest:
    return ExecutionRequest(key="k", graph_id="python:g", grant_id=grant_id, input={}, max_cost=UNIT)


def _spent(unit: str) -> GraphEvent:
    call = ModelCall(unit=unit, model="gpt-4o", input_tokens=1_000, output_tokens=100)
    return GraphEvent(EventKind.USAGE, {"unit": unit}, call)


async def hanging(call: GraphCall, tell: Tell) -> None:
    tell(_spent("first"))
    tell(GraphEvent(EventKind.LOG, {"entered": call.attempt}))
    print("entered", flush=True)
    await asyncio.Event().wait()


async def finishing(call: GraphCall, tell: Tell) -> dict[str, int]:
    tell(_spent("second"))
    return {"attempt": call.attempt}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "duly.db") if store == "sqlite" else str(request.getfixturevalue("fresh_postgres_url"))


@pytest.mark.req("GRAPH-18")
def test_a_killed_service_frees_the_key_and_what_both_attempts_spent_is_charged_once(place: str) -> None:
    asyncio.run(asyncio.wait_for(_scenario(place), 120))


async def _scenario(place: str) -> None:
    queue, executions = await service(place, finishing)
    try:
        account = await queue.accounts.create(owner="ann", name="main")
        await queue.accounts.credit(account.id, amount=10 * UNIT, key="first")
        grant = await queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:*"])
        run_id = await _killed_in_the_middle(queue, place, grant.id)

        outcome = await _outcome(executions, asked(grant.id))

        assert (outcome.ok, outcome.attempt, outcome.run_id) == (True, 2, run_id)
        holds = [await queue.money.get(run_id, attempt, owner=None) for attempt in (1, 2)]
        assert [hold.state.value for hold in holds] == ["lapsed", "settled"]
        assert holds[0].spent == holds[1].spent > 0
        balance = (await queue.accounts.get(account.id, owner=None)).balance
        assert (balance.held, balance.charged) == (0, holds[0].spent + holds[1].spent)
        assert [finding async for verdict in queue.money_audit.verdicts() for finding in verdict.findings] == []
    finally:
        await queue.close()


async def _killed_in_the_middle(queue: Queue, place: str, grant_id: str) -> str:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    program = [sys.executable, "-c", HANGING, place, grant_id]
    process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "entered\n"
        return await _begun(queue)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


async def _begun(queue: Queue) -> str:
    """Once what it told is kept: killed any sooner, it may have spent nothing yet."""
    while True:
        found = await queue.storage.read(lambda tx: tx.executions.by_key("k"))
        if found is not None and await _events(queue, found.run_id):
            return found.run_id
        await asyncio.sleep(0.02)


async def _events(queue: Queue, run_id: str) -> list[ExecutionEvent]:
    return await queue.storage.read(lambda tx: tx.executions.events(run_id, after=0, most=9))


async def _outcome(executions: Executions, request: ExecutionRequest) -> Execution:
    """Refused until lease and grace have run out, and no longer."""
    refusals = 0
    while True:
        try:
            outcome = await executions.execute(request)
        except StillRunning:
            refusals += 1
            await asyncio.sleep(0.1)
        else:
            assert refusals
            return outcome
