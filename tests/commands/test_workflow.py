"""`duly workflow` on both stores: deployed, looked at, run, undeployed."""

import json
from pathlib import Path
from typing import Any

from tests.commands.conftest import Said, Shell

FLOW: dict[str, Any] = {
    "name": "news",
    "nodes": [{"id": "a", "action": {"http": {"url": "https://a.example"}}, "inputs": {"x": {"param": "topic"}}}],
    "triggers": [{"type": "schedule_based", "cron_expr": "0 7 * * *", "params": {"topic": "ai"}}],
}


def done(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_a_workflow_is_deployed_looked_at_run_and_undeployed(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "news.json").write_text(json.dumps(FLOW))

    deployed = done(shell("workflow", "deploy", "news.json", "--json"))
    again = shell("workflow", "deploy", "news.json").out
    (tmp_path / "news.json").write_text(json.dumps({**FLOW, "triggers": []}))
    changed = shell("workflow", "deploy", "news.json").out
    launched = done(shell("workflow", "run", "news", "--params", '{"topic": "sea"}', "--key", "one", "--json"))
    repeated = done(shell("workflow", "run", "news", "--params", '{"topic": "sea"}', "--key", "one", "--json"))

    assert (deployed["version"], deployed["schedules"][0]["fate"]) == (1, "created")
    assert "is so already: dag:news@1\n  unchanged workflow:news:schedule" in again
    assert "deployed dag:news@2\n  deleted workflow:news:schedule" in changed
    assert launched == repeated
    assert done(shell("job", "show", launched["job_id"], "--json"))["kind"] == "graph.run"
    assert [each["version"] for each in done(shell("workflow", "versions", "news", "--json"))["items"]] == [2, 1]
    assert done(shell("workflow", "show", "news", "--version", "1", "--json"))["document"]["triggers"]
    assert "POST https://a.example" in shell("workflow", "show", "news").out
    assert shell("workflow", "list").out.splitlines()[1].split()[:3] == ["news", "2", "yes"]
    assert shell("workflow", "runs", "news").err == "no runs\n"
    assert done(shell("workflow", "undeploy", "news", "--yes", "--json")) == {"schedules": []}
    assert shell("workflow", "run", "news", "--params", '{"topic": "sea"}').code == 4


def test_what_is_wrong_is_said_in_one_line_and_nothing_is_done(here: Shell, tmp_path: Path) -> None:
    (tmp_path / "news.json").write_text(json.dumps({**FLOW, "nodes": [{"id": "a", "action": "send"}]}))
    environment = {"DULY_DATABASE_URL": "work.db"}

    nobody = here("workflow", "deploy", "news.json", **environment)
    missing = here("workflow", "deploy", "none.json", **environment)
    unknown = here("workflow", "show", "none", **environment)
    asked = here("workflow", "run", "none", "--wait", "--timeout", "1s", **environment)

    assert (nobody.code, missing.code, unknown.code, asked.code) == (2, 2, 3, 3)
    assert missing.err == "duly: FILE: none.json: No such file or directory (name a file that can be read)\n"
    assert "nodes.a.action: no program has an action 'send'" in nobody.err
    assert unknown.err.strip().endswith("see: duly workflow list")


def test_a_dry_run_checks_and_changes_nothing(here: Shell, tmp_path: Path) -> None:
    (tmp_path / "news.json").write_text(json.dumps(FLOW))

    said = here("workflow", "deploy", "news.json", "--dry-run", DULY_DATABASE_URL="work.db")

    assert (said.code, "news has 1 nodes and 1 schedules" in said.err) == (0, True)
    assert not (tmp_path / "work.db").exists()
