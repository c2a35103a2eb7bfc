"""The suite's own machinery: fresh databases, serial tests alone, no Postgres test skipped unseen."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from tests import postgres_server

TESTS = Path(__file__).parents[1]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A checkout whose tests have our conftest."""
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "postgres_server.py"):
        shutil.copy(TESTS / name, tmp_path / "tests")
    shutil.copy(TESTS.parent / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("_time", [1, 2])
def test_each_test_has_a_database_of_its_own(fresh_postgres_url: str, _time: int) -> None:
    async def create_a_table() -> list[str]:
        connection = await asyncpg.connect(fresh_postgres_url)
        try:
            await connection.execute("CREATE TABLE only_once ()")
            settings = ("fsync", "synchronous_commit", "max_connections")
            return [await connection.fetchval(f"SHOW {setting}") for setting in settings]
        finally:
            await connection.close()

    assert asyncio.run(create_a_table()) == ["on", "on", "200"]


def test_the_server_of_a_killed_run_is_stopped_by_the_next() -> None:
    program = """
import os, signal
from tests import postgres_server
directory = postgres_server.new_directory()
postgres_server.start_once(directory)
print(directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", program]
    killed = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    directory = Path(killed.stdout.strip())
    assert (directory / "data" / "postmaster.pid").exists()

    postgres_server.stop_abandoned()

    assert not directory.exists()


def test_tests_are_counted_by_store(suite: Path) -> None:
    (suite / "tests/test_stores.py").write_text("""
import pytest

@pytest.fixture(params=["sqlite", "postgres"])
def store(request): return request.param

def test_on_both(store): ...
@pytest.mark.store("sqlite")
def test_on_one(): ...
def test_on_none(): ...
""")

    result = run_pytest(suite)

    assert result.returncode == 0, result.stdout
    counts, closing = result.stdout.splitlines()[-2:]
    assert counts == "sqlite: 2 tests, postgres: 1 tests, store-agnostic: 1 tests"
    assert "4 passed" in closing


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_a_skipped_postgres_test_fails_the_run(suite: Path, options: list[str]) -> None:
    (suite / "tests/test_stores.py").write_text("""
import pytest

@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_on_both(store):
    if store == "postgres":
        pytest.skip("no server today")
""")

    result = run_pytest(suite, *options)

    assert result.returncode == 1, result.stdout
    assert "FAILED: 1 Postgres tests were skipped" in result.stdout


def test_serial_tests_run_last_and_alone_under_xdist(suite: Path) -> None:
    (suite / "tests/test_load.py").write_text("""
import pathlib, time, pytest

HERE = pathlib.Path(__file__).parent

@pytest.mark.serial
@pytest.mark.parametrize("n", range(4))
def test_alone(n):
    assert not list(HERE.glob("*.running"))
    (HERE / "alone.running").touch()
    time.sleep(0.05)
    assert [path.name for path in HERE.glob("*.running")] == ["alone.running"]
    (HERE / "alone.running").unlink()

@pytest.mark.parametrize("n", range(12))
def test_together(n):
    assert not (HERE / "alone.running").exists()
    running = HERE / f"{n}.running"
    running.touch()
    time.sleep(0.05)
    assert not (HERE / "alone.running").exists()
    running.unlink()
""")

    result = run_pytest(suite, "-n", "2", "--dist", "worksteal")

    assert result.returncode == 0, result.stdout
    assert "16 passed" in result.stdout


def run_pytest(suite: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=suite, capture_output=True, text=True, check=False)
