"""What runs say reaches the store in batches, in order, and before the end of their job is told."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from duly.application.logs import Logs
from duly.bootstrap import Queue, Settings
from duly.domain.errors import Unavailable
from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.jobs import JobStatus, NewJob
from duly.domain.logs import Artifact, LogLevel, LogLine, Progress
from duly.worker.context import JobContext
from duly.worker.coroutines import in_loop
from duly.worker.logbook import BATCH, Logbook
from tests.adapters.worker.working import ended, put, working

pytestmark = pytest.mark.store("sqlite")


class Faulty(Logs):
    """Fails as often as it is told to, and counts what it was handed."""

    __slots__ = ("batches", "failures")

    def __init__(self, logs: Logs) -> None:
        super().__init__(logs.storage)
        object.__setattr__(self, "batches", [])
        object.__setattr__(self, "failures", [])

    async def keep(
        self, lines: Sequence[LogLine], progress: Sequence[Progress] = (), artifacts: Sequence[Artifact] = ()
    ) -> None:
        self.batches.append(len(lines))  # type: ignore[attr-defined]
        if self.failures:  # type: ignore[attr-defined]
            raise self.failures.pop()  # type: ignore[attr-defined]
        await super().keep(lines, progress, artifacts)


def _line(job_id: JobId, number: int) -> LogLine:
    return LogLine(job_id, number, Instant(number), LogLevel.INFO, f"line {number}")


async def _book() -> tuple[Queue, JobId, Faulty, Logbook]:
    queue = await Queue.open(Settings(database_url=":memory:"))
    job = (await queue.jobs.put(NewJob(kind="work"))).job_id
    logs = Faulty(queue.logs)
    book = Logbook(logs)
    book.open()
    return queue, job, logs, book


async def _until_kept(queue: Queue, job: JobId, count: int) -> float:
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(10):
        while len(await queue.logs.lines(job, most=10_000)) < count:  # noqa: ASYNC110 - a row rings no bell
            await asyncio.sleep(0.01)
    return asyncio.get_running_loop().time() - began


def test_a_line_is_kept_within_half_a_second_and_many_sooner() -> None:
    async def scenario() -> None:
        queue, job, logs, book = await _book()
        book.add_line(_line(job, 1))
        book.add_line(_line(job, 2))
        assert await _until_kept(queue, job, 2) > 0.3
        assert logs.batches == [2]  # type: ignore[attr-defined]

        for number in range(3, 3 + BATCH):
            book.add_line(_line(job, number))
        assert await _until_kept(queue, job, 2 + BATCH) < 0.4
        book.close()
        await queue.close()

    asyncio.run(scenario())


def test_however_often_a_run_says_how_far_it_is_the_loop_is_woken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        queue, job, _, book = await _book()
        woken: list[object] = []
        monkeypatch.setattr(book, "_write_in", woken.append)
        for number in range(1_000):
            book.add_progress(Progress(job, Instant(number), number, ""))
        await book.flush()
        book.add_progress(Progress(job, Instant(1_000), 1_000, ""))

        assert len(woken) == 2
        await queue.close()

    asyncio.run(scenario())


def test_threads_may_speak_at_once_and_nothing_is_lost() -> None:
    async def scenario() -> None:
        queue, job, _, book = await _book()

        def speak(first: int) -> None:
            for number in range(first, first + 500):
                book.add_line(_line(job, number))

        threads = [threading.Thread(target=speak, args=(1 + 500 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        await _until_kept(queue, job, 2_000)
        book.close()
        await queue.close()

    asyncio.run(scenario())


def test_a_store_that_cannot_be_reached_is_tried_again() -> None:
    async def scenario() -> None:
        queue, job, logs, book = await _book()
        logs.failures.append(Unavailable("made to fail"))  # type: ignore[attr-defined]
        book.add_progress(Progress(job, Instant(1), 100, "old"))
        book.add_line(_line(job, 1))
        book.add_artifact(Artifact(job, "a", 1, "aa"))

        await book.flush()
        book.add_line(_line(job, 2))
        book.add_progress(Progress(job, Instant(2), 200, "new"))
        assert not book.is_empty

        await _until_kept(queue, job, 2)
        assert await queue.logs.progress(job) == Progress(job, Instant(2), 200, "new")
        assert await queue.logs.artifacts(job) == [Artifact(job, "a", 1, "aa")]
        book.close()
        await queue.close()

    asyncio.run(scenario())


class Slow(Logs):
    """Takes its time, until it is told to go on."""

    __slots__ = ("begun", "go_on")

    def __init__(self, logs: Logs) -> None:
        super().__init__(logs.storage)
        object.__setattr__(self, "begun", asyncio.Event())
        object.__setattr__(self, "go_on", asyncio.Event())

    async def keep(
        self, lines: Sequence[LogLine], progress: Sequence[Progress] = (), artifacts: Sequence[Artifact] = ()
    ) -> None:
        self.begun.set()  # type: ignore[attr-defined]
        await self.go_on.wait()  # type: ignore[attr-defined]
        await super().keep(lines, progress, artifacts)


def test_what_is_on_its_way_is_waited_for_before_an_end_is_told() -> None:
    """A group's next member reads what the one before left in the transaction that tells its end."""

    async def scenario() -> None:
        queue = await Queue.open(Settings(database_url=":memory:"))
        job = (await queue.jobs.put(NewJob(kind="work"))).job_id
        logs = Slow(queue.logs)
        book = Logbook(logs)
        book.add_artifact(Artifact(job, "a", 1, "aa"))
        writing = asyncio.create_task(book.flush())
        await logs.begun.wait()  # type: ignore[attr-defined]

        assert not book.is_empty, "it was taken, and is not there yet"
        reporting = asyncio.create_task(book.flush())
        await asyncio.sleep(0)
        assert not reporting.done()
        logs.go_on.set()  # type: ignore[attr-defined]
        await reporting

        assert await queue.logs.artifacts(job) == [Artifact(job, "a", 1, "aa")]
        assert book.is_empty
        await writing
        await queue.close()

    asyncio.run(scenario())


def test_lines_that_no_store_takes_do_not_stand_before_others() -> None:
    async def scenario() -> None:
        queue, job, logs, book = await _book()
        logs.failures.append(ValueError("made to fail"))  # type: ignore[attr-defined]
        book.add_line(_line(job, 1))
        await book.flush()
        book.add_line(_line(job, 2))
        await book.flush()

        assert await queue.logs.lines(job) == [_line(job, 2)]
        book.close()
        await queue.close()

    asyncio.run(scenario())


def test_what_is_held_back_for_a_lost_store_is_bounded() -> None:
    async def scenario() -> None:
        queue, job, logs, book = await _book()
        long = _line(job, 1)._replace(text="x" * 100_000)
        for _ in range(400):
            logs.failures.append(Unavailable("made to fail"))  # type: ignore[attr-defined]
            book.add_line(long)
            await book.flush()

        assert len(book._lines) < 170
        book.close()
        await queue.close()

    asyncio.run(scenario())


def test_whoever_sees_a_job_ended_sees_its_last_words() -> None:
    async def speak(context: JobContext, times: int) -> None:
        for number in range(times):
            context.log(f"{number}\nand more", level="warning")
        context.progress(0.9994, "almost")
        context.progress(2, "done")

    async def scenario() -> None:
        async with working({"speak": in_loop(speak)}) as (queue, _):
            for times in (1, 3, 300):
                job_id = await put(queue, "speak", params={"times": times})
                assert (await ended(queue, job_id)).status is JobStatus.COMPLETED

                lines = await queue.logs.lines(job_id, most=10_000)
                said = [text for number in range(times) for text in (str(number), "and more")]
                assert [line.text for line in lines] == said
                assert {line.level for line in lines} == {LogLevel.WARNING}
                progress = await queue.logs.progress(job_id)
                assert progress is not None
                assert (progress.fraction, progress.note) == (1.0, "done")

    asyncio.run(scenario())


def test_a_store_that_takes_no_lines_takes_the_jobs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def speak(context: JobContext) -> None:
        context.log("nobody will hear this")

    async def refuse(*_: object) -> None:
        raise Unavailable("made to fail")

    async def scenario() -> None:
        async with working({"speak": in_loop(speak)}) as (queue, _):
            monkeypatch.setattr(Logs, "keep", refuse)
            job_id = await put(queue, "speak")

            assert (await ended(queue, job_id)).status is JobStatus.COMPLETED

    asyncio.run(scenario())
