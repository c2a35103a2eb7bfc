"""A real process that runs an app, and is told to stop."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from duly import Duly, Settings
from duly.domain.jobs import Job

PROGRAM = Path(__file__).with_name("program.py")
ROOT = Path(__file__).parents[2]


@pytest.mark.req("CON-003")
@pytest.mark.req("CON-001")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_a_program_told_to_stop_ends_what_runs_claims_nothing_more_and_exits_0(
    database_url: str, tmp_path: Path, number: signal.Signals
) -> None:
    notes = tmp_path / "notes"
    notes.touch()
    asking = Duly(settings=Settings(database_url=database_url), name="asking")
    for name in ("in_loop", "in_thread"):
        asking.job(name=name)(lambda: None)
    async with asking:
        running = [await asking.put("in_loop"), await asking.put("in_thread")]
        waiting = await asking.put("in_loop")
        argv = [sys.executable, "-W", "error", str(PROGRAM), database_url, str(notes)]
        process = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.PIPE, cwd=ROOT)
        while len(notes.read_text().split()) < 2:  # noqa: ASYNC110 - a file rings no bell
            await asyncio.sleep(0.01)

        process.send_signal(number)

        _, complaints = await process.communicate()
        assert (process.returncode, complaints.decode()) == (0, "")
        assert set(notes.read_text().split()) == {"in_loop", "in_thread", "ended"}
        assert [await asking.result(put) for put in running] == ["rested", "rested, False"]
        assert isinstance(await asking.queue.jobs.get(waiting.job_id), Job)
        assert (await asking.queue.health.census()).sessions == 0
        assert [schedule.id for schedule in await asking.schedules()] == ["seldom"]
