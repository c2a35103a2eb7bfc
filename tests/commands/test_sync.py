"""`duly sync` on both stores: what it says it did, and files that it takes nothing of."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from duly.wire.governance import SyncReport
from tests.commands.conftest import Shell

FILE = """
[schedules.cleanup]
target = "cleanup"
every = "1h"

[schedules.govern]
graph = "langgraph:govern"
cron = "0 * * * *"
timezone = "Europe/Berlin"
input = { message = "GOVERN" }
model = "ollama:llama3"
"""
YAML = """
schedules:
  cleanup: {target: cleanup, every: 1h}
  once: {target: cleanup, at: 2999-01-01T00:00:00Z}
"""


@pytest.fixture(autouse=True)
def free_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is paid for."""
    monkeypatch.setenv("DULY_FREE_MODELS", "ollama:*")


def written(tmp_path: Path, text: str, name: str = "system.toml") -> str:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return name


@pytest.mark.req("GRAPH-28")
def test_it_says_what_it_creates_updates_with_which_fields_leaves_and_pauses(shell: Shell, tmp_path: Path) -> None:
    first = shell("sync", written(tmp_path, FILE))
    assert (first.code, first.out.splitlines()[-1]) == (0, "2 created, 0 updated, 0 unchanged, 0 paused"), first.err

    changed = FILE.replace("Berlin", "Paris").replace('"GOVERN"', '"GO"').replace("llama3", "qwen3")
    said = shell("sync", written(tmp_path, changed[changed.index("[schedules.govern]") :]))

    assert said.out.splitlines() == [
        "paused     governance:cleanup",
        "    enabled: true → false",
        "updated    governance:govern",
        "    timezone: Europe/Berlin → Europe/Paris",
        "    model: ollama:llama3 → ollama:qwen3",
        '    input: {"message": "GOVERN"} → {"message": "GO"}',
        "0 created, 1 updated, 0 unchanged, 1 paused",
    ]
    listed = json.loads(shell("schedule", "list", "--json").out)["items"]
    assert [(each["id"], each["owner"], each["state"]) for each in listed] == [
        ("governance:cleanup", "system", "paused"),
        ("governance:govern", "system", "active"),
    ]


def test_for_programs_it_is_one_line_of_json_and_a_dry_run_changes_nothing(shell: Shell, tmp_path: Path) -> None:
    shell("sync", written(tmp_path, "[schedules]", "none.toml"))
    file = written(tmp_path, FILE)
    dry = shell("sync", file, "--dry-run", "--json")
    wet: dict[str, Any] = json.loads(shell("sync", file, "--json").out)

    assert json.loads(dry.out) == {**wet, "dry_run": True}
    assert set(wet) == set(SyncReport.model_fields)
    assert json.loads(shell("sync", file, "--dry-run", "--json").out)["unchanged"] == 2


def test_what_cannot_be_paid_is_refused_dry_or_not_and_says_what_helps(shell: Shell, tmp_path: Path) -> None:
    shell("sync", written(tmp_path, "[schedules]", "none.toml"))
    unknown = written(tmp_path, FILE.replace("ollama:llama3", "somebodys"))
    for flags in ([], ["--dry-run"]):
        said = shell("sync", unknown, *flags)
        assert (said.code, said.out) == (5, "")
        assert "name it in DULY_FREE_MODELS" in said.err
    paid = written(tmp_path, FILE.replace("ollama:llama3", "gpt-4o"))
    assert shell("sync", paid, "--dry-run").code == 5
    refused = shell("sync", paid)
    assert (refused.code, refused.out) == (5, "")

    credit = refused.err.partition("add credit first: duly ")[2].split()
    assert shell(*credit).code == 0
    dry, wet = shell("sync", paid, "--dry-run"), shell("sync", paid)

    assert (dry.code, wet.code, dry.out) == (0, 0, wet.out), wet.err


@pytest.mark.store("sqlite")
def test_a_dry_run_needs_and_makes_no_database(here: Shell, tmp_path: Path) -> None:
    said = here("sync", written(tmp_path, FILE), "--dry-run")

    assert (said.code, said.err) == (0, "dry run: nothing was changed\n")
    assert said.out.startswith("created    governance:cleanup\n")
    assert [path.name for path in tmp_path.iterdir()] == ["system.toml"]


@pytest.mark.store("sqlite")
def test_yaml_says_the_same(here: Shell, tmp_path: Path) -> None:
    said = here("sync", written(tmp_path, YAML, "system.yaml"), "--json")

    assert (said.code, json.loads(said.out)["created"]) == (0, 2), said.err


@pytest.mark.store("sqlite")
def test_without_a_library_for_yaml_it_says_what_to_install(
    here: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)

    said = here("sync", written(tmp_path, YAML, "system.yml"))

    assert (said.code, "pip install 'duly[yaml]'" in said.err) == (2, True)
    assert not (tmp_path / "duly.db").exists()


@pytest.mark.store("sqlite")
@pytest.mark.req("GRAPH-28", error=True)
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('target = "x"\ncron = "0 25 * * *"', "schedules.bad.cron, position 2: 25 is outside 0-23"),
        ('target = "x"\nevery = "1h"\ntimezone = "UTC"', "schedules.bad.timezone: means nothing beside every"),
        ('target = "x"\nevery = "soon"', "schedules.bad.every"),
        ('target = "x"', "schedules.bad.cron: is missing, and so are every and at"),
        ('every = "1h"', "schedules.bad.target: is missing, and so is graph"),
        ('target = "x"\ngraph = "python:g"\nevery = "1h"', "schedules.bad.target: is given beside graph"),
        ('target = "x"\nmodel = "m"\nevery = "1h"', "schedules.bad.model: means nothing beside target"),
        ('graph = "no graph"\nevery = "1h"', "schedules.bad.graph"),
        ('graph = "python:g"\nevery = "1h"\nmax_cost = "much"', "schedules.bad.max_cost"),
        ('graph = "python:g"\nevery = "1h"\non_crash = "panic"', "schedules.bad.on_crash"),
        ('target = "x"\nevery = "1h"\ntimezon = "UTC"', "did you mean 'timezone'?"),
        ('target = "x"\nevery = "1h"\nretry = {max_attempts = 0}', "schedules.bad.retry.max_attempts"),
        ('target = "x"\nevery = "1h"\nretry = {tries = 1}', "schedules.bad.retry.tries"),
        ('target = "x"\nevery = "1h"\npriority = "high"', "schedules.bad.priority"),
        ('target = "x"\nevery = "1h"\ninput = {when = 2027-01-01}', "schedules.bad.input.when"),
        ('target = "x"\nat = 2027-01-01T00:00:00', "schedules.bad.at"),
        ('target = "x"\nat = 2001-01-01T00:00:00Z', "schedules.bad: has no fire left"),
        ('target = "x"\nevery = "1h"\npool = "nowhere"', "schedules.bad.pool"),
        ('target = "x"\nevery = "1h"\n[schedules."Big Name"]\n', "schedules.Big Name: 'Big Name' is not a name"),
        ('target = "x"\nevery = "1h"\n[schedule.a]\n', "did you mean 'schedules'?"),
        ("target = ", "is no TOML: Invalid value (at line 7, column 10)"),
    ],
)
def test_a_bad_file_names_the_key_the_reason_and_the_fix_and_nothing_is_done(
    here: Shell, tmp_path: Path, line: str, said: str
) -> None:
    text = f'[schedules.good]\ntarget = "x"\nevery = "1h"\n\n\n[schedules.bad]\n{line}\n'

    refused = here("sync", written(tmp_path, text))

    assert refused.code == 2, refused.out
    assert said in refused.err
    assert (refused.out, refused.err.count("\n")) == ("", 1)
    assert "governance:good" not in here("schedule", "list").out


@pytest.mark.store("sqlite")
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("system.toml", b"", "schedules: is missing"),
        ("system.toml", b"schedules = 7", "schedules: is a int"),
        ("system.toml", b"[schedules]\na = 7", "schedules.a: is a int"),
        ("system.toml", b"\xff\xfe", "is not UTF-8"),
        ("system.yaml", b"{", "is no YAML"),
        ("system.yaml", b"!!python/object/apply:os.system ['true']", "is no YAML"),
        ("system.yaml", b"- a\n- b", "schedules: is missing"),
        ("system.json", b"{}", "ends with none of .toml"),
        ("", b"", "there is no file nowhere.toml"),
    ],
)
def test_a_file_that_is_none_is_refused_before_a_database_is_made(
    here: Shell, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    if name:
        (tmp_path / name).write_bytes(content)

    refused = here("sync", name or "nowhere.toml")

    assert (refused.code, said in refused.err) == (2 if name else 3, True), refused.err
    assert not (tmp_path / "duly.db").exists()


@pytest.mark.store("sqlite")
def test_an_empty_table_pauses_all_of_them(here: Shell, tmp_path: Path) -> None:
    here("sync", written(tmp_path, FILE))

    said = here("sync", written(tmp_path, "[schedules]"))

    assert said.out.splitlines()[-1] == "0 created, 0 updated, 0 unchanged, 2 paused"
