"""Direct calls in processes that are told to stop, or killed, in the middle of one."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from duly.bootstrap import Queue, Settings
from duly.domain.ids import PoolName
from duly.domain.templates import NewTemplate
from tests.commands.test_processes import PATIENCE_S

PROGRAM = """
import asyncio
from pathlib import Path

from duly import Duly

app = Duly()

@app.job
async def hold(seconds: int) -> str:
    Path("entered").touch()
    await asyncio.sleep(seconds)
    return "held"

@app.job
async def quick() -> str:
    return "quick"
"""


def _started(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    (folder / "calls.py").write_text(PROGRAM)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "duly", *arguments],
        cwd=folder,
        env=os.environ | {"DULY_DATABASE_URL": "duly.db", "DULY_LEASE_MS": "1000"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _until_entered(folder: Path) -> None:
    ticks = threading.Event()
    while not (folder / "entered").exists():
        ticks.wait(0.02)


def _prepare(folder: Path) -> None:
    async def prepare() -> None:
        queue = await Queue.open(Settings(database_url=str(folder / "duly.db")))
        await queue.templates.create(NewTemplate(name="hold", kind="hold"), owner="ann")
        await queue.close()

    asyncio.run(prepare())


def _places(folder: Path) -> tuple[int, int, int]:
    async def look() -> tuple[int, int, int]:
        queue = await Queue.open(Settings(database_url=str(folder / "duly.db")))
        try:
            pool = await queue.pools.get(PoolName("default"))
            return pool.used, pool.tickets, (await queue.health.census()).sessions
        finally:
            await queue.close()

    return asyncio.run(look())


@pytest.mark.req("DEC-004")
@pytest.mark.store("sqlite")
def test_a_server_told_to_stop_answers_the_call_that_runs_and_exits_0(tmp_path: Path) -> None:
    _prepare(tmp_path)
    with _started(tmp_path, "serve", "--port", "0", "--app", "calls.py") as server:
        try:
            assert server.stderr is not None
            url = server.stderr.readline().split()[1].rstrip(";")
            body = json.dumps({"params": {"seconds": 1}}).encode()
            asked = Request(f"{url}/api/v1/direct/hold", body, {"Content-Type": "application/json"})  # noqa: S310
            answers: list[Any] = []

            def call() -> None:
                with urlopen(asked, timeout=PATIENCE_S) as answer:  # noqa: S310
                    answers.append(json.load(answer))

            calling = threading.Thread(target=call)
            calling.start()
            _until_entered(tmp_path)
            server.send_signal(signal.SIGTERM)
            calling.join(PATIENCE_S)
            server.communicate(timeout=PATIENCE_S)
        finally:
            server.kill()
    assert (answers, server.returncode) == ([{"result": "held"}], 0)
    assert _places(tmp_path) == (0, 0, 0)


@pytest.mark.req("DEC-004")
@pytest.mark.req("RISK-02")
@pytest.mark.store("sqlite")
def test_the_place_of_a_caller_that_was_killed_is_free_after_its_lease(tmp_path: Path) -> None:
    _prepare(tmp_path)
    with _started(tmp_path, "direct", "hold", "--app", "calls.py", "--param", "seconds=600") as killed:
        _until_entered(tmp_path)
        killed.kill()
        killed.communicate(timeout=PATIENCE_S)
    assert _places(tmp_path) == (1, 0, 1)

    with _started(tmp_path, "direct", "quick", "--app", "calls.py", "--timeout", f"{PATIENCE_S}s") as next_one:
        said, complaints = next_one.communicate(timeout=2 * PATIENCE_S)

    assert (said, complaints, next_one.returncode) == ("quick\n", "", 0)
    assert _places(tmp_path) == (0, 0, 0)
