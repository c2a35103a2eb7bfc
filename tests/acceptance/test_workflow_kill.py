"""A service that is killed in the middle of a workflow: the next one goes on after the last finished node."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from duly.application.executions import Executions
from duly.bootstrap import Queue, Registry, Settings
from duly.domain.executions import Execution, ExecutionRequest
from duly.domain.payloads import Payload, value_of
from duly.domain.requests import StillRunning
from tests.acceptance.test_execution_kill import PACE

HANGING = """
import asyncio, sys
from tests.acceptance.test_workflow_kill import asked, service
async def main():
    place, grant_id, journal = sys.argv[1:]
    queue, executions = await service(place, journal, hangs=True)
    await executions.execute(asked(grant_id))
asyncio.run(main())
"""
FLOW = {
    "name": "steps",
    "nodes": [
        {"id": "one", "action": "step", "inputs": {"name": "one"}},
        {"id": "two", "action": "step", "inputs": {"name": "two", "after": {"from": "one"}}},
        {"id": "three", "action": "step", "inputs": {"name": "three", "after": {"from": "two"}}},
        {"id": "four", "action": "step", "inputs": {"name": "four", "after": {"from": "three"}}},
    ],
}


async def service(place: str, journal: str, *, hangs: bool) -> tuple[Queue, Executions]:
    async def step(name: str, after: str = "") -> str:
        with Path(journal).open("a", encoding="utf-8") as written:  # noqa: ASYNC230 - it is told, then it hangs
            written.write(f"{name}\n")
        if hangs and name == "three":
            print("entered", flush=True)
            await asyncio.Event().wait()
        return f"{after}{name} "

    queue = await Queue.open(Settings(database_url=place))
    registry = Registry()
    registry.add_action("step", step)
    return queue, queue.executions(registry, pace=PACE)


def asked(grant_id: str) -> ExecutionRequest:
    return ExecutionRequest(key="k", graph_id="dag:steps", grant_id=grant_id, input={})


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "duly.db") if store == "sqlite" else str(request.getfixturevalue("fresh_postgres_url"))


@pytest.mark.req("CRON-08")
def test_a_killed_workflow_goes_on_after_its_last_finished_node(place: str, tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_scenario(place, tmp_path / "journal"), 120))


async def _scenario(place: str, journal: Path) -> None:
    queue, executions = await service(place, str(journal), hangs=False)
    try:
        account = await queue.accounts.create(owner="ann", name="main")
        grant = await queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:*"])
        await queue.workflows.deploy(FLOW, owner="ann", knows=["step"])
        _killed_in_the_middle(place, grant.id, journal)
        assert _told(journal) == ["one", "two", "three"]

        outcome = await _outcome(executions, asked(grant.id))

        assert (outcome.ok, outcome.attempt) == (True, 2), outcome.error_message
        assert value_of(outcome.result or Payload("null")) == {"outputs": {"four": "one two three four "}}
        assert _told(journal) == ["one", "two", "three", "three", "four"]
        told = await queue.dag_runs.get(outcome.run_id, owner="ann")
        assert {row.node: row.tries for row in told.nodes} == {"one": 1, "two": 1, "three": 2, "four": 1}
    finally:
        await executions.close()
        await queue.close()


def _told(journal: Path) -> list[str]:
    return journal.read_text(encoding="utf-8").split()


def _killed_in_the_middle(place: str, grant_id: str, journal: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    program = [sys.executable, "-c", HANGING, place, grant_id, str(journal)]
    process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "entered\n"
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


async def _outcome(executions: Executions, request: ExecutionRequest) -> Execution:
    """Refused until lease and grace have run out, and no longer."""
    while True:
        try:
            return await executions.execute(request)
        except StillRunning:
            await asyncio.sleep(0.1)
