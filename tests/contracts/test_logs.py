"""What runs say is kept once, in order, and as long as their job."""

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.jobs import UnknownJob
from duly.domain.logs import Artifact, LogLevel, LogLine, Progress
from duly.storage.errors import ConstraintViolated
from tests.contracts.world import World

LATER = 60


def _lines(job_id: JobId, *numbers: int, at: int = 1) -> list[LogLine]:
    return [LogLine(job_id, number, Instant(at), LogLevel.INFO, f"line {number}") for number in numbers]


async def test_lines_are_read_in_order_after_the_last_one_seen(world: World) -> None:
    job, other = await world.put(), await world.put()
    odd = LogLine(job, 4, Instant(9), LogLevel.STDERR, "ünïcode\ttabs\nand more")
    await world.queue.logs.keep([*_lines(job, 2, 3, 1), *_lines(other, 1), odd])

    assert await world.queue.logs.lines(job) == [*_lines(job, 1, 2, 3), odd]
    assert await world.queue.logs.lines(job, after=2) == [*_lines(job, 3), odd]
    assert await world.queue.logs.lines(job, after=1, most=1) == _lines(job, 2)
    assert await world.queue.logs.lines(other, after=1) == []


async def test_a_batch_whose_answer_was_lost_is_kept_once(world: World) -> None:
    job = await world.put()
    batch = (_lines(job, 1, 2), [Progress(job, Instant(1), 500, "half")], [Artifact(job, "a.csv", 3, "00")])
    await world.queue.logs.keep(*batch)

    await world.queue.logs.keep(*batch)
    await world.queue.logs.keep(_lines(job, 2, 3))

    assert await world.queue.logs.lines(job) == _lines(job, 1, 2, 3)
    assert await world.queue.logs.artifacts(job) == [Artifact(job, "a.csv", 3, "00")]


async def test_of_progress_the_newest_stands(world: World) -> None:
    job = await world.put()
    assert await world.queue.logs.progress(job) is None
    await world.queue.logs.keep([], [Progress(job, Instant(2), 500, "half")])

    await world.queue.logs.keep([], [Progress(job, Instant(1), 100, "late to arrive")])
    assert await world.queue.logs.progress(job) == Progress(job, Instant(2), 500, "half")

    await world.queue.logs.keep([], [Progress(job, Instant(3), 1_000, "")])
    assert (await world.queue.logs.progress(job) or Progress(job, Instant(0), 0, "")).fraction == 1.0


async def test_artifacts_are_listed_by_name(world: World) -> None:
    job = await world.put()
    written = [Artifact(job, "b/c.txt", 2**40, "cc"), Artifact(job, "a", 0, "aa")]

    await world.queue.logs.keep([], [], written)

    assert await world.queue.logs.artifacts(job) == written[::-1]


async def test_what_a_job_said_stays_when_it_ends_and_goes_with_it(world: World) -> None:
    job, younger = await world.put(), await world.put()
    hand = await world.hand()
    first, second = await hand.claim(2)
    await hand.finish(first)
    await world.queue.logs.keep(_lines(job, 1), [Progress(job, Instant(1), 1, "")], [Artifact(job, "a", 0, "aa")])
    assert await world.queue.logs.lines(job) == _lines(job, 1)
    world.clock.advance(LATER)
    await hand.finish(second)
    await world.queue.logs.keep(_lines(younger, 1))

    assert await world.queue.jobs.prune(before=world.clock.now()) == 1

    for table in ("job_logs", "job_progress", "job_artifacts"):
        assert await world.rows(f"SELECT count(*) FROM {table} WHERE job_id = '{job}'") == [(0,)]
    assert await world.queue.logs.lines(younger) == _lines(younger, 1)


async def test_a_word_about_a_job_that_is_not_there_is_not_kept(world: World) -> None:
    job, gone = await world.put(), JobId("gone")

    await world.queue.logs.keep(
        [*_lines(gone, 1), *_lines(job, 1)], [Progress(gone, Instant(1), 1, "")], [Artifact(gone, "a", 0, "aa")]
    )

    assert await world.queue.logs.lines(job) == _lines(job, 1)
    for table in ("job_logs", "job_progress", "job_artifacts"):
        assert await world.rows(f"SELECT count(*) FROM {table} WHERE job_id = 'gone'") == [(0,)]
    for read in (world.queue.logs.lines, world.queue.logs.progress, world.queue.logs.artifacts):
        with pytest.raises(UnknownJob):
            await read(gone)


async def test_a_thousand_lines_are_one_batch(world: World) -> None:
    job = await world.put()
    await world.queue.logs.keep(_lines(job, *range(1, 1_001)))

    assert len(await world.queue.logs.lines(job, most=10_000)) == 1_000


@pytest.mark.parametrize(("after", "most"), [(-1, 1), (0, 0), (0, 10_001), (2**63, 1)])
async def test_a_page_that_means_nothing_is_refused(world: World, after: int, most: int) -> None:
    job = await world.put()

    with pytest.raises(InvalidInput):
        await world.queue.logs.lines(job, after=after, most=most)


@pytest.mark.parametrize("permille", [-1, 1_001])
async def test_the_schema_refuses_progress_beyond_its_ends(world: World, permille: int) -> None:
    job = await world.put()

    with pytest.raises(ConstraintViolated):
        await world.queue.logs.keep([], [Progress(job, Instant(1), permille, "")])
