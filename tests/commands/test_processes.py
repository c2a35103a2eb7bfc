"""`duly init`, `duly worker`, `duly timekeeper` and `duly serve` as processes of their own."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from duly.cli.processes import until_stopped
from duly.cli.serve import is_loopback
from duly.cli.worker import pools_from
from duly.domain.errors import InvalidInput
from tests.commands.conftest import Shell
from tests.commands.test_duly import duly

PATIENCE_S = 60
EVERYWHERE = "0.0.0.0"  # noqa: S104 - to be warned of
PROGRAM = """
from duly import Duly, Slot, every

app = Duly()


@app.job(schedule=every("1s"))
def tick(slot: Slot) -> str:
    return str(slot)
"""


@contextmanager
def going_on(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that goes on, and the line by which it says so."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "duly", *arguments],
        cwd=folder,
        env=os.environ | {"DULY_DATABASE_URL": "duly.db"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            yield process, process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
        finally:
            process.kill()


def test_a_part_that_fails_cuts_nothing_that_another_still_does() -> None:
    done: list[str] = []

    class Failing:
        async def run(self) -> None:
            raise RuntimeError("no more")

        def stop(self) -> None:
            done.append("failing was told")

    class Working:
        def __init__(self) -> None:
            self._told = asyncio.Event()

        async def run(self) -> None:
            await self._told.wait()
            for _ in range(10):
                await asyncio.sleep(0)
            done.append("worked off")

        def stop(self) -> None:
            self._told.set()

    with pytest.raises(RuntimeError, match="no more"):
        asyncio.run(until_stopped([Failing(), Working()]))

    assert done == ["failing was told", "worked off"]


def test_a_worker_and_a_timekeeper_run_a_program_and_stop_when_told(tmp_path: Path) -> None:
    (tmp_path / "schedules.py").write_text(PROGRAM)
    with (
        going_on(tmp_path, "worker", "--app", "schedules.py", "--pool", "default=2") as (_, working),
        going_on(tmp_path, "timekeeper") as (_, keeping),
    ):
        said = duly("schedule", "trigger", "tick", "--wait", "--timeout", "60s", "--json", cwd=tmp_path)
        shown = duly("run", "show", json.loads(said.stdout)["id"], "--json", cwd=tmp_path)

    assert "pools default=2" in working
    assert "keeping time on duly.db" in keeping
    assert (said.returncode, json.loads(said.stdout)["status"]) == (0, "success")
    assert json.loads(shown.stdout)["attempts"][0]["result"].endswith("Z")


def test_a_worker_may_keep_time_itself(tmp_path: Path) -> None:
    (tmp_path / "schedules.py").write_text(PROGRAM)
    with going_on(tmp_path, "worker", "--app", "schedules.py:app", "--keep-time") as (process, _):
        assert process.stderr is not None
        ended = next(line for line in process.stderr if "job_ended" in line)

    assert json.loads(ended)["status"] == "COMPLETED"


def test_serving_says_where_and_answers_with_the_same_shapes(tmp_path: Path) -> None:
    duly("schedule", "add", "digest", "--every", "1h", "--target", "work", cwd=tmp_path)
    with going_on(tmp_path, "serve", "--port", "0") as (_, serving):
        url = serving.split()[1].rstrip(";")
        with urlopen(f"{url}/api/v1/schedules", timeout=PATIENCE_S) as answer:  # noqa: S310
            served = json.load(answer)
        printed = json.loads(duly("schedule", "list", "--json", cwd=tmp_path).stdout)

    assert served == printed


def test_serving_others_without_a_token_says_how_to_make_one(tmp_path: Path) -> None:
    with going_on(tmp_path, "serve", "--host", EVERYWHERE, "--port", "0") as (process, warning):
        assert process.stderr is not None
        remedy = process.stderr.readline()
        assert process.stderr.readline().startswith("serving ")

    assert "every request needs a token" in warning
    assert "duly token add --role admin" in remedy


@pytest.mark.store("sqlite")
def test_init_writes_a_program_that_loads_and_never_over_another(here: Shell, tmp_path: Path) -> None:
    assert here("init").out == "schedules.py\n"
    written = (tmp_path / "schedules.py").read_text()

    again = here("init")

    assert again.code == 4
    assert (tmp_path / "schedules.py").read_text() == written
    compile(written, "schedules.py", "exec")


@pytest.mark.store("sqlite")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("worker", "--app"),
        ("worker --app nowhere.py", "there is no such file"),
        ("worker --app torn.py", "ZeroDivisionError"),
        ("worker --app torn.py --pool default", "--pool"),
        ("worker --app torn.py --pool default=0", "--pool"),
        ("serve --port 70000", "--port"),
    ],
)
def test_what_cannot_run_is_refused_with_its_reason(
    here: Shell, tmp_path: Path, arguments: str, complaint: str
) -> None:
    (tmp_path / "torn.py").write_text("1 / 0\n")

    said = here(*arguments.split())

    assert said.code == 2
    assert complaint in said.err.splitlines()[-1]
    assert not (tmp_path / "duly.db").exists()


def test_a_pool_may_be_named_with_its_number_of_jobs() -> None:
    assert pools_from(["default=4", "graphs=1"]) == {"default": 4, "graphs": 1}
    with pytest.raises(InvalidInput, match="--pool"):
        pools_from(["default=four"])


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost")),
        *((host, False) for host in (EVERYWHERE, "::", "192.168.1.4", "example.org")),
    ],
)
def test_loopback_addresses_are_known(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
