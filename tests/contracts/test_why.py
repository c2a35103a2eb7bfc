"""Why, from what a real store has recorded."""

import pytest

from duly.application.why import Why
from duly.domain.cadence import every
from duly.domain.explanations import Explanation
from duly.domain.ids import ScheduleId
from duly.domain.instants import SECOND, written
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import UnknownSchedule
from tests.contracts.ledgers import Past, minute
from tests.contracts.world import World

S = ScheduleId("s")


async def why(world: World, number: float) -> Explanation:
    return await Why(storage=world.queue.storage).slot(S, minute(number) // SECOND)


@pytest.mark.req("OWN-02")
async def test_every_slot_can_say_what_became_of_it(world: World) -> None:
    past = await Past.begin(world)
    await past.alive(0, 2.5)
    await past.open(1)
    await past.run_all()
    await past.skip(2)
    await past.miss(3, 5)
    await past.alive(5.5, 6)
    await past.open(6)
    world.clock.advance(6.2 * 60)

    answers = [(await why(world, number)).answer for number in (-1, 1, 1.5, 2, 3, 4, 5, 6, 7)]

    assert answers == [
        "not planned",
        "ran",
        "not planned",
        "skipped",
        "missed",
        "missed",
        "missed",
        "waiting",
        "not due",
    ]


@pytest.mark.req("OWN-02")
async def test_a_run_that_was_retried_says_what_failed(world: World) -> None:
    past = await Past.begin(world, retry=RetryPolicy(max_attempts=2))
    await past.alive(0, 1)
    await past.open(1)
    hand = await world.hand()
    await hand.fail(*await hand.claim())
    world.clock.advance(10)
    await world.queue.jobs.stage()
    await hand.work_off()

    explanation = await why(world, 1)

    assert explanation.answer == "ran"
    assert explanation.sentences[2].endswith(": as asked.")
    assert "2 attempts" in explanation.sentences[-1]


async def test_a_run_whose_jobs_were_pruned_still_says_how_it_ended(world: World) -> None:
    past = await Past.begin(world)
    await past.open(1)
    await past.run_all()
    await world.queue.jobs.prune(before=minute(60))

    assert (await why(world, 1)).answer == "ran"


async def test_slots_that_are_owed_say_so(world: World) -> None:
    past = await Past.begin(world, overlap="queue", catch_up="spread")
    await past.alive(0, 0.5)
    await past.miss(1, 4, owed=True)
    await past.alive(4.5, 5)

    assert (await why(world, 2)).answer == "owed"


@pytest.mark.req("OWN-02")
async def test_a_schedule_says_how_it_stands(world: World) -> None:
    past = await Past.begin(world)
    await past.open(1)

    explanation = await Why(storage=world.queue.storage).schedule(S)

    assert explanation.answer == "active"
    assert explanation.sentences[-1].startswith("2027-01-15T08:01:00Z waiting")


@pytest.mark.req("OWN-06")
async def test_a_schedule_that_was_edited_while_it_was_paused_says_when_it_was_paused(world: World) -> None:
    await Past.begin(world)
    schedules = world.queue.schedules
    paused = await schedules.pause(S, owner=None)
    world.clock.advance(100)
    await schedules.edit(S, owner=None, cadence=every("7m"))

    explanation = await Why(storage=world.queue.storage).schedule(S)

    assert f"paused at {written(paused.updated_at)}." in explanation.sentences[1]


@pytest.mark.req("OWN-02", error=True)
async def test_of_an_unknown_schedule_nothing_can_be_said(world: World) -> None:
    storage = world.queue.storage

    with pytest.raises(UnknownSchedule):
        await Why(storage=storage).schedule(S)
    with pytest.raises(UnknownSchedule):
        await Why(storage=storage).slot(S, 0)
