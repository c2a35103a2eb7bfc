"""`duly dev` in an empty folder and with a program: it answers, runs, follows changes, and ends when told."""

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.dev.dev_process import PATIENCE_S, Dev, audit, dev, ran, refused

PROGRAM = """
import asyncio
from duly import Duly, Slot, every

app = Duly()


@app.job(schedule=every("1s"))
async def tick(slot: Slot) -> str:
    return str(slot)
"""
LINGERING = """
import asyncio
from duly import Duly, every

app = Duly()
app.pool("wide", limit=4)


@app.job(schedule=every("1s"), pool="wide")
async def linger() -> None:
    await asyncio.sleep(600)
"""


def program(folder: Path, text: str) -> None:
    (folder / "schedules.py").write_text(text)


@pytest.mark.req("CON-001")
@pytest.mark.req("DEC-003")
@pytest.mark.req("CRON-12")
def test_an_empty_folder_gets_a_demo_that_runs_retries_and_skips_with_its_reason(tmp_path: Path) -> None:
    """Nothing but Python: no server, no account, no file to begin with."""
    with dev(tmp_path) as process:
        assert process.url.startswith("http://127.0.0.1:")
        url_after = time.monotonic() - process.began
        process.until(lambda line: " ran in " in line)
        first_after = time.monotonic() - process.began
        one_at_a_time = "jobs that name no pool are in 'default', which runs one at a time"
        assert process.lines[1:4] == [
            f"the API is explained at {process.url}/docs",
            "this is a demo; `duly init` writes a schedules.py of your own",
            f"run at once: 8 in pool 'demo', 16 in pool 'graphs'; {one_at_a_time}",
        ]
        assert process.get("/healthz")
        assert process.get("/readyz")["next_fire_at"]
        assert 'duly_schedules{state="active"} 7.0' in process.read("/metrics")
        assert "duly_runs_emitted_total 0.0" not in process.read("/metrics")
        skipped = process.until(lambda line: "demo-slow" in line and "skipped" in line)
        process.until(lambda line: "demo-retry" in line and "attempt 1 of 3 failed" in line)
        process.until(lambda line: ran("demo-retry")(line) and "attempt 2" in line)
        process.until(ran("demo-interval"))
        process.until(ran("demo-program"))
        process.until(lambda line: ran("demo-graph")(line) and line.endswith(", cost 0.00007"))
        asks = process.until(lambda line: "langgraph:demo-review asks " in line)
        approve(tmp_path, asks)
        process.until(lambda line: ran("demo-review")(line) and line.endswith(", cost 0.00007"))
        process.stop()

        assert (process.code, process.lines[-1][10:]) == (0, "stopped; what is scheduled and queued is still there")
        assert "skipped: overlap, run_" in skipped
        assert skipped.endswith("was still running")
        assert "\x1b" not in process.text
    assert audit(tmp_path).returncode == 0
    print(f"URL after {url_after:.2f} s, first scheduled success after {first_after:.2f} s")


def approve(folder: Path, asks: str) -> None:
    """By the command that was shown."""
    assert '{"publish":"a poem about the sea"}: duly review approve review_' in asks
    words = asks.partition("}: duly ")[2].split()
    subprocess.run([sys.executable, "-m", "duly", *words], cwd=folder, check=True, timeout=PATIENCE_S)


def test_without_langgraph_the_demo_goes_on_without_graphs_and_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nreal = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'langgraph' else real(name, *more)\n"
    )
    with dev(tmp_path, PYTHONPATH=str(tmp_path)) as process:
        process.until(lambda line: line.startswith("`pip install 'duly[langgraph]'` adds "))
        process.until(ran("demo-interval"))

        assert "demo-graph" not in process.text


@pytest.mark.req("CON-003")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_ends_though_a_job_runs_and_a_client_follows_it(tmp_path: Path, number: int) -> None:
    program(tmp_path, LINGERING)
    with dev(tmp_path) as process:
        (run,) = running(process, 1)
        with process.following(run) as stream:
            assert stream.readline()
            took = process.stop(number)

        assert process.code == 0, process.text
        assert took < 10
        print(f"ended {took:.2f} s after signal {number}")


def test_told_twice_it_ends_at_once(tmp_path: Path) -> None:
    stubborn = LINGERING.replace("async def", "def").replace("await asyncio.sleep", "__import__('time').sleep")
    program(tmp_path, stubborn)
    with dev(tmp_path) as process:
        running(process, 1)
        process.process.send_signal(signal.SIGINT)
        process.until(lambda line: "once more to stop at once" in line)
        process.stop()

        assert process.code == 130


def test_a_function_that_does_not_stop_keeps_nobody(tmp_path: Path) -> None:
    program(tmp_path, LINGERING.replace("async def", "def").replace("await asyncio.sleep", "__import__('time').sleep"))
    with dev(tmp_path) as process:
        running(process, 1)
        took = process.stop()

        assert process.code == 0, process.text
        assert took < 60


def running(process: Dev, count: int) -> list[str]:
    """Runs that are being run, once there are so many."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        runs = process.get("/api/v1/runs?status=running")["items"]
        if len(runs) >= count:
            return [run["id"] for run in runs]
        time.sleep(0.1)
    raise AssertionError(process.text)


def test_a_changed_program_is_loaded_again_and_a_broken_one_is_not(tmp_path: Path) -> None:
    program(tmp_path, PROGRAM)
    with dev(tmp_path) as process:
        process.until(ran("tick"))

        program(tmp_path, PROGRAM + '\n\n@app.job(schedule=every("1s"))\nasync def tock() -> None: ...\n')
        process.until(lambda line: "loaded again: 1 new" in line)
        process.until(ran("tock"))

        program(tmp_path, PROGRAM + "\nraise RuntimeError('half a thought')\n")
        process.until(lambda line: "cannot be loaded: RuntimeError: half a thought" in line)
        seen = len(process.lines)
        process.until(ran("tick"), after=seen, times=3)
        process.until(ran("tock"), after=seen)
        assert sum("cannot be loaded" in line for line in process.lines) == 1
        assert "loading.py" not in process.text

        program(tmp_path, PROGRAM)
        process.until(lambda line: "loaded again: 1 gone" in line)
        seen = len(process.lines)
        process.until(ran("tick"), after=seen, times=3)
        process.stop()
        assert process.code == 0, process.text
    assert audit(tmp_path).returncode == 0


def test_what_runs_ends_with_the_code_it_began_with(tmp_path: Path) -> None:
    (tmp_path / "go").unlink(missing_ok=True)
    waiting = """
import asyncio, pathlib
from duly import Duly, every

app = Duly()
VERSION = "old"


@app.job(schedule=every("1s"), overlap="skip")
async def wait() -> None:
    pathlib.Path(f"began-{VERSION}").touch()
    while not pathlib.Path("go").exists():
        await asyncio.sleep(0.05)
    pathlib.Path(f"ended-{VERSION}").touch()
"""
    program(tmp_path, waiting)
    with dev(tmp_path) as process:
        wait_for(tmp_path / "began-old")
        program(tmp_path, waiting.replace('"old"', '"renewed"'))
        process.until(lambda line: "loaded again" in line)
        (tmp_path / "go").touch()
        process.until(ran("wait"), times=2)
        assert (tmp_path / "ended-old").exists()
        wait_for(tmp_path / "ended-renewed")
        assert " failed" not in process.text
        process.stop()


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.req("GRAPH-08")
def test_killed_and_started_again_it_has_lost_nothing(tmp_path: Path) -> None:
    program(tmp_path, PROGRAM)
    for _ in range(3):
        with dev(tmp_path, DULY_LEASE_MS="1000") as process:
            process.until(ran("tick"), times=2)
            process.process.kill()
            process.process.wait()
    with dev(tmp_path, DULY_LEASE_MS="1000") as process:
        process.until(ran("tick"), times=2)
        process.stop()
        assert process.code == 0, process.text

    audited = audit(tmp_path)
    assert audited.returncode == 0, audited.stdout
    statuses = sqlite3.connect(tmp_path / "duly.db").execute("SELECT DISTINCT status FROM schedule_runs").fetchall()
    assert ("success",) in statuses


def test_a_program_that_appears_takes_the_place_of_the_demo(tmp_path: Path) -> None:
    with dev(tmp_path) as process:
        process.until(lambda line: " ran in " in line)
        program(tmp_path, PROGRAM)
        process.until(ran("tick"))
        assert [each["id"] for each in process.get("/api/v1/schedules")["items"]] == ["tick"]
        process.stop()


def test_a_schedule_that_somebody_changed_by_hand_is_said_to_be_changed_back(tmp_path: Path) -> None:
    program(tmp_path, PROGRAM)
    with dev(tmp_path) as process:
        process.until(ran("tick"))
        process.stop()
    edit = [sys.executable, "-m", "duly", "schedule", "edit", "tick", "--every", "9m"]
    subprocess.run(edit, cwd=tmp_path, check=True, capture_output=True, stdin=subprocess.DEVNULL)

    with dev(tmp_path) as process:
        assert "run at once: 1 in pool 'default'; " in process.until(lambda line: line.startswith("run at once"))
        process.until(lambda line: line.endswith("changed back to what schedules.py says: tick"))
        process.until(ran("tick"))
        process.stop()


def test_without_a_demo_nothing_runs_until_there_is_a_program(tmp_path: Path) -> None:
    with dev(tmp_path, "--no-demo") as process:
        assert process.get("/api/v1/schedules")["items"] == []
        program(tmp_path, PROGRAM)
        process.until(ran("tick"))
        process.stop()
        assert process.code == 0


class TestRefusals:
    """One clear line, and an exit code that says no."""

    def test_another_on_the_same_file(self, tmp_path: Path) -> None:
        with dev(tmp_path) as process:
            assert process.url
            code, said = refused(tmp_path)

        assert code == 4
        assert said.startswith("duly: another `duly dev` runs on ")
        assert "\n" not in said

    def test_a_port_that_is_taken(self, tmp_path: Path) -> None:
        with dev(tmp_path) as process:
            port = process.url.rpartition(":")[2]
            code, said = refused(tmp_path, "--port", port, DULY_DATABASE_URL="other.db")

        assert code == 1
        assert said.startswith(f"duly: cannot listen on 127.0.0.1 port {port}: Address already in use; try --port 0")
        assert not list(tmp_path.glob("other.db*"))

    def test_a_database_of_a_newer_duly(self, tmp_path: Path) -> None:
        with dev(tmp_path, "--no-demo") as process:
            assert process.url
            process.stop()
        with sqlite3.connect(tmp_path / "duly.db") as database:
            table = "INSERT INTO schema_migrations SELECT 9999, name, applied_at FROM schema_migrations LIMIT 1"
            database.execute(table)

        code, said = refused(tmp_path)

        assert code != 0
        assert said.startswith("duly: ")
        assert said.endswith("upgrade duly")
        assert "\n" not in said

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        code, said = refused(tmp_path, DULY_DATABASE_URL="nowhere/duly.db")

        assert code == 1
        assert said.startswith("duly: ")
        assert said.endswith("/nowhere does not exist; create it")
        assert "\n" not in said

    def test_an_address_that_others_reach_while_nobody_has_a_token(self, tmp_path: Path) -> None:
        code, said = refused(tmp_path, "--host", "0.0.0.0")  # noqa: S104 - it refuses

        assert code == 2
        assert said.startswith("duly: --host: ")
        assert "\n" not in said


def test_a_program_that_is_saved_while_it_is_loaded_first_is_loaded_again(tmp_path: Path) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go_on"
    slow = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\n"
    slow += f"while not pathlib.Path({str(go_on)!r}).exists():\n    time.sleep(0.01)\n"
    program(tmp_path, slow + PROGRAM)
    with dev(tmp_path) as process:
        deadline = time.monotonic() + PATIENCE_S
        while not begun.exists():
            assert time.monotonic() < deadline, process.text
            time.sleep(0.01)
        program(tmp_path, PROGRAM.replace("tick", "tock"))
        go_on.touch()

        process.until(lambda line: "loaded again: 1 new, 1 gone" in line)
        process.until(ran("tock"))
        process.stop()
        assert process.code == 0, process.text


@pytest.mark.parametrize("renamed", [False, True])
def test_a_program_that_cannot_take_over_leaves_the_old_one_at_work(tmp_path: Path, renamed: bool) -> None:
    program(tmp_path, PROGRAM)
    with dev(tmp_path) as process:
        process.until(ran("tick"))

        wrong = PROGRAM + '\n\n@app.job(pool="nowhere")\nasync def lost() -> None: ...\n'
        wrong = wrong.replace("tick", "tock")
        program(tmp_path, wrong.replace("Duly()", "Duly(name='other')") if renamed else wrong)
        process.until(lambda line: "was not taken over: " in line and "nowhere" in line)
        seen = len(process.lines)

        process.until(ran("tick"), after=seen, times=2)
        assert [each["id"] for each in process.get("/api/v1/schedules")["items"]] == ["tick"]
        process.stop()
        assert process.code == 0, process.text
