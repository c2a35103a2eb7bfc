"""What the command says about itself, and what it must not load to say so."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from duly.cli import exits
from duly.cli.commands import COMMANDS
from duly.cli.output import table
from duly.cli.tree import leaves
from duly.domain.errors import Conflict, DulyError, InvalidInput, NotFound, Refused, Unavailable
from duly.domain.pools import UnknownPool
from tests.commands.conftest import Shell, Terminal

HEAVY = ("fastapi", "starlette", "uvicorn", "asyncpg", "apsw", "pydantic", "rich", "structlog", "duly.bootstrap")
LEAVES = list(leaves())
# Those that go on until they are stopped, and a script for a shell.
WITHOUT_JSON = {"dev", "serve", "worker", "timekeeper", "completion"}


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    program = f"""
import sys
from duly.__main__ import main
try:
    main(["--help"])
except SystemExit:
    print([name for name in {HEAVY} if name in sys.modules])
"""

    said = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert said.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(here: Shell, name: str) -> None:
    said = here(name, "--help")

    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"usage: duly {name}")


def test_everything_that_prints_data_prints_json_too() -> None:
    without = {leaf.path[0] for leaf in LEAVES if not any("--json" in each.names for each in leaf.arguments)}

    assert without == WITHOUT_JSON


def test_every_option_says_what_it_means() -> None:
    silent = [
        f"{' '.join(leaf.path)} {each.names[0]}"
        for leaf in LEAVES
        for each in leaf.arguments
        if each.names and not each.means
    ]

    assert silent == []


def test_what_destroys_can_be_told_yes_and_every_change_can_be_tried() -> None:
    options = {leaf.path: {name for each in leaf.arguments for name in each.names} for leaf in LEAVES}

    destroys = {"delete", "revoke", "undeploy", "prune"}
    starts_many = {("schedule", "backfill"), ("job", "retry-failed")}
    for path in [path for path in options if path[-1] in destroys] + sorted(starts_many):
        assert {"--yes", "--dry-run"} <= options[path], path
    changes = [
        *(("schedule", each) for each in ("add", "edit", "pause", "resume", "delete", "trigger", "backfill")),
        *(
            ("run", "cancel"),
            ("job", "cancel"),
            ("job", "put"),
            ("pool", "set"),
            ("token", "add"),
            ("db", "migrate"),
        ),
    ]
    assert [path for path in changes if "--dry-run" not in options[path]] == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("field", "reason"), 2),
        (NotFound("x"), 3),
        (UnknownPool("x"), 3),
        (Conflict("x"), 4),
        (Refused("x"), 5),
        (Unavailable("x"), 1),
        (DulyError("x"), 1),
    ],
)
def test_each_family_of_errors_has_its_exit_code(error: DulyError, code: int) -> None:
    assert exits.exit_code_of(error) == code
    assert code in exits.MEANINGS


def test_a_command_that_is_almost_one_is_named(here: Shell) -> None:
    said = here("schedul", "list")

    assert said.code == 2
    assert "did you mean 'schedule'?" in said.err


def test_without_a_command_the_usage_is_an_error(here: Shell) -> None:
    assert here().code == 2


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(here: Shell, shell_name: str) -> None:
    script = here("completion", shell_name).out

    assert "backfill" in script
    assert "dry-run" in script


def test_bash_completes(here: Shell, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(here("completion", "bash").out)
    typing = ("sche", "schedule bac", "schedule add x --overl", "why --j")
    ask = (
        'source ./script; complete_for() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _duly; echo "${COMPREPLY[*]}"; };'
        + "".join(f" complete_for duly {typed};" for typed in typing)
    )

    said = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert said.stdout.splitlines() == ["schedule", "backfill", "--overlap", "--json"]


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_is_for_people_who_want_it(monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("NO_COLOR", no_color)

    table(("id", "state"), [("a", "broken")], empty="")

    assert ("\x1b[31m" in screen.getvalue()) is coloured


def test_there_is_no_colour_off_a_terminal(here: Shell) -> None:
    here("db", "migrate")

    assert "\x1b" not in here("pool", "list").out


def test_ctrl_c_is_quiet_and_a_list_is_watched_until_then(tmp_path: Path) -> None:
    environment = os.environ | {"DULY_DATABASE_URL": "watched.db"}
    command = [sys.executable, "-W", "error", "-m", "duly"]
    subprocess.run([*command, "db", "migrate"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    with subprocess.Popen(
        [*command, "pool", "list", "--watch", "--json"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hears_ctrl_c,  # noqa: PLW1509 - nothing else runs in this process by then
    ) as process:
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        process.send_signal(2)
        try:
            _, complaint = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:  # one that comes as a look ends may be lost: a person presses again
            process.send_signal(2)
            _, complaint = process.communicate(timeout=60)

    assert first == second
    assert (process.returncode, complaint) == (130, "")


def _hears_ctrl_c() -> None:
    """What a shell starts in the background is deaf to it, and so is all that such a test run starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


# Where a thing is looked at, made, changed or removed, but the words above would say it wrongly, and why.
OTHER_WORDS = {
    ("job", "put"): "the queue's own word, from Python to HTTP",
    ("workflow", "deploy"): "a document becomes the next version, and schedules follow it",
    ("workflow", "undeploy"): "schedules go, versions and runs stay",
}


def test_every_noun_is_made_looked_at_and_removed_by_the_same_words(here: Shell) -> None:
    paths = {leaf.path for leaf in LEAVES if len(leaf.path) == 2}

    synonyms = {"create", "new", "make", "get", "describe", "ls", "update", "change", "remove", "rm", "drop"}
    assert [path for path in paths if path[1] in synonyms] == []
    assert paths >= OTHER_WORDS.keys()
    listed = {noun for noun, verb in paths if verb == "list"}
    assert [noun for noun in sorted(listed) if (noun, "show") not in paths] == []


@pytest.mark.parametrize("noun", ["account", "grant", "group", "token", "webhook"])
def test_what_a_command_was_called_before_is_understood_and_no_longer_shown(here: Shell, noun: str) -> None:
    assert here(noun, "create", "--help").out.startswith(f"usage: duly {noun} add")
    assert "create" not in here(noun, "--help").out
    assert "create" not in here(noun, "nonsense").err
    assert (noun, "create") not in {leaf.path for leaf in LEAVES}


def test_every_list_is_paged_watched_and_printed_by_the_same_options() -> None:
    listed: set[tuple[str, ...]] = {
        ("schedule", "runs"),
        ("job", "failed"),
        ("job", "queue"),
        ("workflow", "runs"),
        ("workflow", "versions"),
    }
    listed |= {("webhook", "deliveries")} | {leaf.path for leaf in LEAVES if leaf.path[-1] == "list"}
    options = {leaf.path: {name for each in leaf.arguments for name in each.names} for leaf in LEAVES}

    lacking = {path: {"--after", "--most", "--watch", "--json"} - options[path] for path in listed}

    assert {path: names for path, names in lacking.items() if names} == {}
    assert [path for path in listed if "--from" in options[path]] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["schedule", "add", "a", "--every", "1h", "--targt", "x"],
            "there is no option --targt; did you mean --target?",
        ),
        (["schedule", "add", "a", "--evry=1h", "--target", "x"], "there is no option --evry; did you mean --every?"),
        (["schedule", "add", "a", "--every", "1h"], "the following arguments are required: --target"),
        (["pool", "set", "mail", "--limit", "1"], "there is no option --limit; did you mean --slots?"),
    ],
)
def test_what_is_misspelt_is_named_before_what_is_missing(here: Shell, given: list[str], said: str) -> None:
    assert here(*given).err.startswith(f"duly: {said}")
