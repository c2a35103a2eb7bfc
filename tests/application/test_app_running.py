"""An app at work in memory: it opens, runs, is told to stop, and says what is not so."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from duly import Conflict, Duly, DulyError, InvalidInput, JobFailed, JobNotEnded, NotFound, Settings
from duly.app.client import Named
from duly.app.refusals import AlreadyOpen, NotOpen
from duly.app.running import Stop, run_until
from duly.domain.jobs import FinishedJob, Job, JobStatus


def memory() -> Duly:
    return Duly(settings=Settings(database_url=":memory:"))


@pytest.mark.req("CON-003")
def test_an_app_that_is_told_to_stop_ends_what_runs_and_claims_nothing_more() -> None:
    app = memory()
    entered, finish = asyncio.Event(), asyncio.Event()

    @app.job
    async def slow() -> str:
        entered.set()
        await finish.wait()
        return "done"

    async def scenario() -> None:
        async with app:
            first, second = await app.put_many(slow, [{}, {}])
            running = asyncio.create_task(app.run())
            await entered.wait()

            app.stop()
            for _ in range(10):
                await asyncio.sleep(0)
            assert not running.done()
            finish.set()
            await running

            assert await app.result(first) == "done"
            assert isinstance(await app.queue.jobs.get(second.job_id), Job)

    asyncio.run(scenario())


@pytest.mark.req("CON-003", error=True)
def test_what_does_not_end_within_the_grace_is_asked_to_stop_and_recorded_so() -> None:
    app = memory()
    entered = asyncio.Event()

    @app.job(retries=0)
    async def endless() -> None:
        entered.set()
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with app:
            put = await app.put(endless)
            running = asyncio.create_task(app.run(grace="10ms"))
            await entered.wait()
            app.stop()
            await running

            with pytest.raises(JobFailed, match="stopped by its worker"):
                await app.result(put)

    asyncio.run(scenario())


def test_an_app_can_be_used_in_one_event_loop_after_another() -> None:
    app = memory()

    async def scenario() -> list[str]:
        async with app:
            return [schedule.id for schedule in await app.schedules()]

    assert asyncio.run(scenario()) == asyncio.run(scenario()) == []


def test_an_app_is_open_once_and_only_in_its_loop() -> None:
    app = memory()

    async def scenario() -> None:
        with pytest.raises(NotOpen, match="async with app"):
            _ = app.queue
        async with app:
            with pytest.raises(AlreadyOpen):
                await app.open()
            await asyncio.to_thread(asyncio.run, refused())
        with pytest.raises(NotOpen):
            await app.put("anything")

    async def refused() -> None:
        with pytest.raises(NotOpen):
            await app.schedules()

    asyncio.run(scenario())


def test_an_app_whose_loop_ended_can_be_opened_anew() -> None:
    app = Duly(settings=Settings(database_url=":memory:"))

    async def leave() -> None:
        await app.open()
        await app.queue.close()

    asyncio.run(leave())
    asyncio.run(leave())


def test_a_put_of_what_could_not_run_is_refused() -> None:
    app = memory()

    @app.job
    def resize(picture: str, width: int = 100) -> None: ...

    async def scenario() -> None:
        async with app:
            refused: list[tuple[Named, dict[str, Any], str]] = [
                (resize, {}, "'picture'"),
                (resize, {"picture": "a", "height": 1}, "'height'"),
                ("resise", {}, "use one of: resize"),
                (print, {}, "print is no job"),
                (resize, "a", "params: is a str"),  # type: ignore[list-item]
            ]
            for job, params, told in refused:
                with pytest.raises(InvalidInput, match=told):
                    await app.put(job, params)
            for wrong in ("soon", "in a while"):
                with pytest.raises(InvalidInput, match="run_at"):
                    await app.put(resize, {"picture": "a"}, run_at=wrong)
            with pytest.raises(InvalidInput, match="params: is a str"):
                await app.put_many(resize, ["a"])  # type: ignore[list-item]
            with pytest.raises(InvalidInput, match="resources"):
                await app.put(resize, {"picture": "a"}, resources="ollama")
            with pytest.raises(InvalidInput, match="has no schedule"):
                await app.trigger(resize)

    asyncio.run(scenario())


def test_a_put_says_when_where_and_how_urgently() -> None:
    app = memory()
    app.pool("gpu", limit=2)

    @app.job
    def resize(picture: str) -> None: ...

    async def scenario() -> None:
        async with app:
            now = app.queue.storage.clock.now()
            put = await app.put(
                resize,
                {"picture": "a"},
                key="a",
                lane="b",
                run_at="in 5m",
                priority=7,
                pool="gpu",
                resources=["ollama"],
            )
            job = await app.queue.jobs.get(put.job_id)
            assert isinstance(job, Job)
            assert (job.key, job.lane, job.pool, job.priority, job.resources) == ("a", "b", "gpu", 7, ("ollama",))
            assert 300 <= (job.run_at - now) / 1e6 < 330
            later = await app.put(resize, {"picture": "b"}, run_at=timedelta(hours=1))
            assert (await app.queue.jobs.get(later.job_id)).run_at - now >= 3_600_000_000

    asyncio.run(scenario())


def test_whoever_waits_for_a_result_is_told_what_is_not_so() -> None:
    app = memory()

    @app.job(retries=0)
    async def never() -> None: ...

    async def scenario() -> None:
        async with app:
            put = await app.put(never)
            with pytest.raises(JobNotEnded) as late:
                await app.result(put, timeout=0.01)
            assert isinstance(late.value, TimeoutError)
            assert isinstance(late.value, Conflict)
            with pytest.raises(NotFound):
                await app.result("job_unknown")
            with pytest.raises(InvalidInput, match="put or trigger"):
                await app.result(7)  # type: ignore[arg-type]
            await app.queue.jobs.cancel(put.job_id, reason="no longer wanted")
            with pytest.raises(JobFailed, match="CANCELLED after 1 attempt: no longer wanted") as failed:
                await app.result(put.job_id)
            assert isinstance(failed.value.job, FinishedJob)
            assert failed.value.job.status is JobStatus.CANCELLED
            assert isinstance(failed.value, DulyError)

    asyncio.run(scenario())


def test_when_one_part_fails_the_other_is_ended_first_and_the_failure_is_told() -> None:
    ended: list[str] = []

    class Failing:
        async def run(self) -> None:
            raise OSError("broken")

        def stop(self) -> None: ...

    class Slow:
        def __init__(self) -> None:
            self._stopping = asyncio.Event()

        async def run(self) -> None:
            await self._stopping.wait()
            for _ in range(10):
                await asyncio.sleep(0)
            ended.append("slow")

        def stop(self) -> None:
            self._stopping.set()

    async def scenario() -> None:
        with pytest.raises(OSError, match="broken"):
            await run_until(Stop(), [Failing(), Slow()])
        assert ended == ["slow"]

    asyncio.run(scenario())


def test_an_object_that_is_called_like_an_async_function_runs_as_one() -> None:
    class Greeter:
        async def __call__(self, to: str) -> str:
            return f"hello {to}"

    app = memory()
    greet = app.job(name="greet")(Greeter())

    async def scenario() -> None:
        async with app.running():
            assert await app.result(await app.put(greet, {"to": "you"})) == "hello you"

    asyncio.run(scenario())
