"""Jobs put through an app, on both stores: what they return comes back, and what fails is tried again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from duly import DoNotRetry, Duly, JobContext, JobFailed, JobNotEnded
from duly.domain.jobs import PutOutcome
from tests.app import functions


async def test_every_kind_of_job_gives_its_result(app: Duly, tmp_path: Path) -> None:
    app.pool("wide", limit=4)

    @app.job(pool="wide")
    async def fetch(url: str) -> dict[str, Any]:
        return {"url": url}

    @app.job(pool="wide")
    def resize(picture: str, width: int = 100) -> list[Any]:
        return [picture, width]

    app.job(isolate=True, pool="wide")(functions.add)
    report = app.command("report", ["cat"], result="json", pool="wide", cwd=tmp_path)

    async with app.running():
        puts = [
            await app.put(fetch, {"url": "u"}),
            await app.put("resize", {"picture": "p"}),
            await app.put(functions.add, {"a": 2, "b": 3}),
            await app.put(report, {"month": 11}),
        ]
        results = [await app.result(put) for put in puts]

    assert results == [{"url": "u"}, ["p", 100], 5, {"month": 11}]
    assert resize("p") == ["p", 100]


async def test_what_fails_is_tried_again_and_its_result_is_the_last_attempts(app: Duly) -> None:
    @app.job(retries=2, backoff="1ms")
    async def flaky(context: JobContext) -> int:
        if context.attempt < 3:
            raise OSError("not yet")
        return context.attempt

    async with app.running():
        assert await app.result(await app.put(flaky)) == 3


async def test_a_job_that_fails_for_good_says_why_and_after_how_many_attempts(app: Duly) -> None:
    @app.job(retries=1, backoff="1ms")
    async def broken(*, final: bool) -> None:
        if final:
            raise DoNotRetry("no use")
        raise ValueError("broken")

    async with app.running():
        with pytest.raises(JobFailed, match=r"FAILED after 2 attempts: ValueError: broken"):
            await app.result(await app.put(broken, {"final": False}))
        with pytest.raises(JobFailed, match=r"FAILED after 1 attempt: DoNotRetry: no use"):
            await app.result(await app.put(broken, {"final": True}))


async def test_a_run_that_takes_too_long_fails(app: Duly) -> None:
    @app.job(retries=0, timeout="50ms")
    async def endless() -> None:
        await asyncio.Event().wait()

    async with app.running():
        with pytest.raises(JobFailed, match="timed out after 50 ms"):
            await app.result(await app.put(endless))


async def test_a_key_is_one_job_for_as_long_as_it_waits(app: Duly) -> None:
    @app.job
    async def work(n: int) -> int:
        return n

    async with app:
        first = await app.put(work, {"n": 1}, key="one")
        second = await app.put(work, {"n": 2}, key="one")
        assert (second.job_id, second.outcome) == (first.job_id, PutOutcome.REPLACED)
        with pytest.raises(JobNotEnded):
            await app.result(first, timeout="1ms")

        async with app.running():
            assert await app.result(first) == 2


async def test_many_are_put_at_once_or_none(app: Duly) -> None:
    app.pool("wide", limit=10)

    @app.job(pool="wide")
    async def double(n: int) -> int:
        return 2 * n

    async with app.running():
        puts = await app.put_many(double, ({"n": n} for n in range(20)))
        assert [await app.result(put) for put in puts] == [2 * n for n in range(20)]


async def test_a_result_is_awaited_from_another_program(app: Duly, database_url: str) -> None:
    """Whoever waits shares nothing with whoever works but the database."""
    program = [
        "import asyncio, sys",
        "from duly import Duly",
        "app = Duly(sys.argv[1])",
        "@app.job",
        "async def work(n: int) -> int:",
        "    app.stop()",
        "    return n + 1",
        "app.run_sync()",
    ]
    import sys

    app.job(name="work")(lambda n: n)
    async with app:
        put = await app.put("work", {"n": 1})
        worker = await asyncio.create_subprocess_exec(sys.executable, "-c", "\n".join(program), database_url)
        assert json.loads(json.dumps(await app.result(put))) == 2
        assert await worker.wait() == 0
