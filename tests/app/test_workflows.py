"""Workflows that a program declares, deploys and runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from duly import Duly
from duly.domain.errors import InvalidInput
from duly.domain.payloads import value_of

FLOW: dict[str, Any] = {
    "name": "greeting",
    "nodes": [
        {"id": "who", "action": "who", "inputs": {"name": {"param": "name"}}},
        {"id": "say", "action": "loud", "inputs": {"text": {"from": "who", "path": "result.text"}}},
        {"id": "size", "action": "builtins:len", "inputs": {}, "needs": ["say"], "retries": {"max_attempts": 1}},
    ],
    "triggers": [{"type": "schedule_based", "cron_expr": "0 7 * * *", "params": {"name": "Ann"}}],
}


def declared(place: Path) -> Duly:
    app = Duly(place / "duly.db")

    @app.action
    def who(name: str) -> dict[str, str]:
        return {"text": f"hello {name}"}

    @app.action("loud")
    async def shout(inputs: dict[str, Any]) -> str:
        return str(inputs["text"]).upper()

    return app


@pytest.mark.req("CRON-08")
async def test_a_program_deploys_its_workflow_and_runs_it(tmp_path: Path) -> None:
    app = declared(tmp_path)
    (tmp_path / "flow.json").write_text(json.dumps({**FLOW, "nodes": FLOW["nodes"][:2]}))
    assert app.workflow(tmp_path / "flow.json") == "greeting"

    async with app.running():
        launch = await app.queue.launches.launch("greeting", owner="local", params={"name": "Bea"})
        outcome = await app.result(launch.job_id, timeout="30s")
        told = await app.queue.dag_runs.get(outcome["run_id"], owner="local")
        by_trigger = await app.result(await app.trigger("workflow:greeting:schedule"), timeout="30s")
        planned = await app.queue.dag_runs.get(by_trigger["run_id"], owner="local")

    assert value_of(told.execution.result or "null") == {"outputs": {"say": "HELLO BEA"}}  # type: ignore[arg-type]
    assert value_of(planned.execution.result or "null") == {"outputs": {"say": "HELLO ANN"}}  # type: ignore[arg-type]


async def test_a_place_is_an_action_only_if_it_is_registered(tmp_path: Path) -> None:
    app = declared(tmp_path)
    app.workflow(FLOW)

    with pytest.raises(InvalidInput, match=r"nodes\.size\.action: no program has an action 'builtins:len'"):
        await app.open()

    app.action("builtins:len")
    async with app:
        assert (await app.queue.workflows.get("greeting", owner="local")).newest == 1


def test_what_is_no_workflow_is_refused_where_it_is_declared(tmp_path: Path) -> None:
    app = declared(tmp_path)
    (tmp_path / "bad.json").write_text("{nodes}")

    wrongs: list[tuple[Any, str]] = [
        ({"name": "x", "nodes": []}, "nodes: has 0 nodes"),
        (tmp_path / "none.json", "cannot be read"),
        (tmp_path / "bad.json", "is no JSON"),
    ]
    for wrong, says in wrongs:
        with pytest.raises(InvalidInput, match=says):
            app.workflow(wrong)
    with pytest.raises(InvalidInput, match="'who' is registered already"):
        app.action("who", "builtins:len")
    with pytest.raises(InvalidInput, match="is a int"):
        app.action("seven", 7)  # type: ignore[call-overload]
