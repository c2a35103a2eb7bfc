"""The app for code without an event loop: from many threads, once more after closing, and cleanly at the end."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from duly import Duly, InvalidInput, JobFailed, JobNotEnded, Settings, Unavailable, every
from duly.app.refusals import CalledInLoop
from duly.domain.ids import PoolName
from duly.domain.schedules import ScheduleState

PROGRAM = """
import sys
from duly import Duly

app = Duly(sys.argv[1])

@app.job
def work(n: int) -> int:
    return n

for n in range(3):
    app.sync.put(work, {"n": n})
print("put")
"""

FORKING = """
import os, sys
from duly import Duly

app = Duly(sys.argv[1])

@app.job
def work(n: int) -> int:
    return n

app.sync.put(work, {"n": 0})
child = os.fork()
app.sync.put(work, {"n": 1})
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def declare(app: Duly) -> None:
    app.pool("wide", limit=8)

    @app.job(pool="wide")
    def double(n: int) -> int:
        if n < 0:
            raise ValueError("negative")
        return 2 * n


def test_eight_threads_put_and_wait_at_once(app: Duly) -> None:
    declare(app)
    started, ended = threading.Event(), threading.Event()

    async def run() -> None:
        async with app.running():
            started.set()
            await asyncio.to_thread(ended.wait)

    def use(thread: int) -> list[int]:
        puts = [app.sync.put("double", {"n": 100 * thread + n}) for n in range(10)]
        puts += app.sync.put_many("double", [{"n": 100 * thread + n} for n in range(10, 20)])
        return [app.sync.result(put, timeout=60) for put in puts]

    running = threading.Thread(target=lambda: asyncio.run(run()))
    running.start()
    try:
        assert started.wait(60)
        with app.sync, ThreadPoolExecutor(8) as threads:
            results = list(threads.map(use, range(8)))
    finally:
        ended.set()
        running.join()

    assert results == [[2 * (100 * thread + n) for n in range(20)] for thread in range(8)]
    assert "duly-sync" not in {thread.name for thread in threading.enumerate()}


def test_schedules_are_driven_without_an_event_loop(app: Duly) -> None:
    @app.job(schedule=every("1d"))
    def work() -> None: ...

    with app.sync as duly:
        assert duly.pause(work).state is ScheduleState.PAUSED
        assert duly.resume("work").state is ScheduleState.ACTIVE
        run = duly.trigger("work")
        assert [schedule.id for schedule in duly.schedules()] == ["work"]
        with pytest.raises(JobNotEnded):
            duly.result(run, timeout="1ms")
    with app.sync as duly:
        assert duly.trigger("work").id != run.id


@pytest.mark.store("sqlite")
def test_what_fails_is_raised_where_it_was_asked_for(tmp_path: Path) -> None:
    app = Duly(tmp_path / "duly.db")
    declare(app)

    with app.sync as duly:
        with pytest.raises(InvalidInput, match="'n'"):
            duly.put("double")
        put = duly.put("double", {"n": -1})

        async def cancel() -> None:
            async with app:
                await app.queue.jobs.cancel(put.job_id, reason="negative")

        asyncio.run(cancel())
        with pytest.raises(JobFailed, match="negative"):
            duly.result(put, timeout=60)
    with pytest.raises(InvalidInput, match="no store"):
        Duly("mysql://nowhere").sync.schedules()
    with pytest.raises(InvalidInput, match="memory"):
        Duly(settings=Settings(database_url=":memory:")).sync.schedules()
    assert "duly-sync" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.store("sqlite")
def test_an_event_loop_is_not_held_up(tmp_path: Path) -> None:
    app = Duly(tmp_path / "duly.db")
    declare(app)

    async def scenario() -> None:
        with pytest.raises(CalledInLoop, match=r"await app\.put"):
            app.sync.put("double", {"n": 1})
        await asyncio.to_thread(app.sync.put, "double", {"n": 1})

    asyncio.run(scenario())
    app.sync.close()


@pytest.mark.store("sqlite")
def test_whoever_waits_while_it_is_closed_waits_no_longer(tmp_path: Path) -> None:
    app = Duly(tmp_path / "duly.db")
    declare(app)
    put = app.sync.put("double", {"n": 1})

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(app.sync.result, put)
        while not asyncio.all_tasks(app.sync._portal._loop):  # type: ignore[union-attr]
            pass
        app.sync.close()
        with pytest.raises(Unavailable, match="closed while it was asked"):
            waiting.result(60)


@pytest.mark.req("DEC-002")
def test_a_program_that_never_closes_it_ends_cleanly(store: str, database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, database_url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "put\n", "")
    if store == "sqlite":
        assert not Path(f"{database_url}-wal").exists(), "it was closed, not cut"


def test_a_forked_process_begins_anew(database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, database_url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    with Duly(settings=Settings(database_url=database_url)).sync as duly:
        assert len(duly._ask(lambda client: client.queue.jobs.upcoming(PoolName("default")))) == 3
