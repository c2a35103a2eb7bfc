"""Worker and execution service are killed -9 at every point of a run: no slot is lost, nothing is paid or run twice.

`DULY_KILLS_OF_GRAPHS` sets how many kills each store gets, shared between the two; `DULY_SEED` repeats a run's choices,
though not its timing.
"""

import asyncio
import json
import os
import random
import secrets
import socket
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import httpx2
import pytest

from duly.application.audit import Audit
from duly.bootstrap import Queue, Settings
from duly.domain.amounts import UNIT
from duly.domain.executions import Execution, request_of
from duly.domain.runs import Run, RunStatus
from tests.acceptance.conftest import NewPlace
from tests.acceptance.crash_points import MOMENTS, CrashPoint
from tests.acceptance.graph_lives import LATER_STEPS, ROOT, STEPS, Role
from tests.acceptance.graph_program import UNITS
from tests.acceptance.journal import boottime
from tests.acceptance.processes import side_by_side, until

KILLS = int(os.environ.get("DULY_KILLS_OF_GRAPHS") or 4)
SECRET = "a secret that two services share, of 32 bytes or more"  # noqa: S105
LEASE_MS = 2_000
PROGRAM = "tests.acceptance.graph_program:app"


class Scene:
    def __init__(self, database_url: str, folder: Path) -> None:
        self.database_url = database_url
        self.folder = folder
        self.seed = int(os.environ.get("DULY_SEED") or secrets.randbelow(10**9))
        self.url = f"http://127.0.0.1:{_free_port()}"
        self.journal = folder / "journal"
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "DULY_DATABASE_URL": database_url,
            "DULY_LEASE_MS": str(LEASE_MS),
            "DULY_INTERNAL_API_TOKEN": SECRET,
            "DULY_INTERNAL_API_URL": self.url,
            "GRAPH_JOURNAL": str(self.journal),
        }
        commands = {
            "service": ["serve", "--app", PROGRAM, "--port", self.url.rpartition(":")[2]],
            "worker": ["worker", "--app", PROGRAM],
        }
        self.roles = [
            Role(name, command, folder, environment, KILLS // 2, random.Random(self.seed + number))
            for number, (name, command) in enumerate(commands.items())
        ]

    def lines(self, event: str) -> list[dict[str, Any]]:
        read = self.journal.read_text() if self.journal.exists() else ""
        return [line for line in map(json.loads, read.splitlines()) if line["event"] == event]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.req("GRAPH-18")
@pytest.mark.req("GRAPH-20")
@pytest.mark.req("OWN-06")
@pytest.mark.store("sqlite")
@pytest.mark.store("postgres")
def test_workers_and_services_are_killed_at_every_point_and_each_slot_has_one_outcome_and_is_paid_once(
    new_place: NewPlace,
) -> None:
    scenes = [Scene(place.database_url, place.folder) for place in map(new_place, ("sqlite", "postgres"))]
    print(f"seeds {[scene.seed for scene in scenes]}")
    asyncio.run(side_by_side(*map(_scenario, scenes)))


async def _scenario(scene: Scene) -> None:
    queue = await Queue.open(Settings(database_url=scene.database_url))
    keeper = queue.timekeeper()
    keeping = asyncio.create_task(keeper.run())
    try:
        account = await queue.accounts.create(owner="local", name="main")
        await queue.accounts.credit(account.id, amount=100_000 * UNIT, key="first")
        async with asyncio.TaskGroup() as group:
            for role in scene.roles:
                group.create_task(role.be_killed())
        await _settle_down(queue, scene)
        runs = [run for name in ("resume", "rerun") for run in await _runs_of(queue, f"python:{name}")]
        await _judge(queue, scene, runs)
        await _replayed(queue, scene, runs)
        await _money_is_exact(queue, account.id, scene)
        findings = [v async for each in Audit(storage=queue.storage).verdicts() for v in each.findings.kept]
        assert findings == []
        print(f"{scene.database_url.partition(':')[0][-12:]}\n{_figures(scene, runs)}")
    finally:
        keeper.stop()
        await keeping
        for role in scene.roles:
            role.end()
        await queue.close()


async def _settle_down(queue: Queue, scene: Scene) -> None:
    """No more slots; what was opened ends, and what the dead held is free within the lease of a hold."""
    await until(lambda: bool(scene.lines("left")), within=90, what="a graph was executed at all")
    for schedule in await queue.schedules.list(owner=None):
        await queue.schedules.pause(schedule.id, owner=None)
    deadline = boottime() + 120 + KILLS
    while True:
        open_runs = [
            run
            for schedule in await queue.schedules.list(owner=None)
            for run in await _runs_of(queue, schedule.id)
            if not run.status.is_terminal
        ]
        if not open_runs and not await _holds(queue):
            return
        why = "".join(role.complaints for role in scene.roles)
        assert boottime() < deadline, f"{len(open_runs)} runs and {await _holds(queue)} holds are left: {why}"
        await asyncio.sleep(0.2)


async def _holds(queue: Queue) -> int:
    return sum([account.balance.held > 0 for account in await queue.accounts.list(owner=None)])


async def _runs_of(queue: Queue, schedule_id: str) -> list[Run]:
    runs: list[Run] = []
    while page := await queue.schedules.runs(
        schedule_id, owner=None, before=runs[-1].scheduled_for if runs else None, most=500
    ):
        runs += page
    return runs


async def _judge(queue: Queue, scene: Scene, runs: list[Run]) -> None:
    """Each slot has ended; whatever was executed has one outcome, by one run id, and obeyed its policy for crashes."""
    entered: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in scene.lines("entered"):
        entered[line["run"]].append(line)
    known = Counter(run.run_id for run in runs if run.run_id is not None)
    assert [run_id for run_id, times in known.items() if times > 1] == []
    assert {line["run"] for line in scene.lines("left")} <= set(known) | await _unnoted(queue, set(entered))
    for lines in entered.values():
        attempts = [line["attempt"] for line in lines]
        assert attempts == sorted(set(attempts)), f"an attempt was entered twice, or out of order: {lines}"
        for line in lines:
            follows = line["attempt"] > 1
            assert line["continues"] is (follows and line["graph"] == "python:resume"), line
    for run in runs:
        # One that was hit at every attempt of its job has failed by its policy; any other succeeds.
        is_worn_out = run.status is RunStatus.ERROR and run.attempt_count >= 5
        is_ours = any(why in (run.error_message or "") for why in ("worker lost", "could not be asked"))
        assert run.status is RunStatus.SUCCESS or (is_worn_out and is_ours), run
        if run.run_id is not None and run.status is RunStatus.SUCCESS:
            execution = await _execution(queue, run.run_id)
            assert execution is not None
            assert (execution.ok, execution.trace_id) == (True, run.trace_id)
            assert json.loads(execution.result or "") == {"attempt": execution.attempt}


async def _execution(queue: Queue, run_id: str) -> Execution | None:
    return await queue.storage.read(lambda tx: tx.executions.by_run(run_id))


async def _unnoted(queue: Queue, run_ids: set[str]) -> set[str]:
    """Executed, but no worker lived to write it down: their jobs were worn out."""
    found = set()
    for run_id in run_ids:
        execution = await _execution(queue, run_id)
        assert execution is not None, f"{run_id} was entered, and nobody knows it"
        found.add(run_id)
    return found


async def _replayed(queue: Queue, scene: Scene, runs: list[Run]) -> None:
    """Asked again, the service answers what it has, and runs nothing."""
    before = len(scene.lines("entered"))
    headers = {"Authorization": f"Bearer {SECRET}"}
    async with httpx2.AsyncClient(base_url=scene.url, headers=headers, timeout=30) as client:
        for run in [run for run in runs if run.run_id is not None][:20]:
            execution = await _execution(queue, run.run_id or "")
            assert execution is not None
            asked = request_of(execution.key, execution.request)
            body = {
                "execution_grant_id": asked.grant_id,
                "input": dict(asked.input),
                "max_cost": "0.50",
                "on_crash": asked.on_crash.value,
                "schedule_id": asked.schedule_id,
            }
            path = f"/api/internal/graphs/{asked.graph_id}/runs"
            answer = await client.post(path, json=body, headers={"Idempotency-Key": asked.key})
            assert answer.status_code == 200, answer.text
            assert (answer.json()["ok"], answer.json()["run_id"]) == (execution.ok, execution.run_id)
    assert len(scene.lines("entered")) == before


async def _money_is_exact(queue: Queue, account_id: str, scene: Scene) -> None:
    """Nothing is held, every receipt is of an attempt that was entered, and whoever ended well has both of its own."""
    balance = (await queue.accounts.get(account_id, owner=None)).balance
    assert balance.held == 0
    receipts: list[Any] = []
    before = None
    while True:
        statement = await queue.accounts.statement(account_id, owner=None, before=before, most=1_000)
        receipts += [line for line in statement.lines if hasattr(line, "unit")]
        before = statement.before
        if before is None:
            break
    units: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for receipt in receipts:
        units[receipt.run_id, receipt.attempt].append(receipt.unit)
    entered = {(line["run"], line["attempt"]) for line in scene.lines("entered")}
    assert set(units) <= entered
    assert all(len(set(each)) == len(each) for each in units.values())
    for run_id, attempt in {(line["run"], line["attempt"]) for line in scene.lines("left")}:
        execution = await _execution(queue, run_id)
        if execution is not None and execution.ok and execution.attempt == attempt:
            assert sorted(units[run_id, attempt]) == sorted(UNITS)
    assert sum(receipt.amount for receipt in receipts) == balance.charged
    assert [finding async for verdict in queue.money_audit.verdicts() for finding in verdict.findings] == []


def _figures(scene: Scene, runs: list[Run]) -> str:
    ends = Counter(run.status.value for run in runs)
    entered = scene.lines("entered")
    again = sum(line["attempt"] > 1 for line in entered)
    told = [f"{len(runs)} slots: {dict(ends)}; {len(entered)} attempts entered, {again} of them taken over"]
    for role in scene.roles:
        missed = sorted(map(str, role.points - role.died_at))
        died = f"died at {len(role.died_at)} of {len(role.points)} points, not at {missed}"
        told.append(f"{role.name}: {role.killed} kills, {died}")
        if KILLS >= 100:
            steps = (*STEPS[role.name], *LATER_STEPS[role.name])
            wanted = {CrashPoint(statement, moment) for statement in steps for moment in MOMENTS}
            assert wanted <= role.died_at, f"{role.name} did not die at {wanted - role.died_at}"
    return "\n".join(told)
