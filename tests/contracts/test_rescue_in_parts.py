"""Sessions with more runs than one batch of a rescue."""

from duly.application.sessions import RESCUE_BATCH
from tests.contracts.world import World, new

MANY = RESCUE_BATCH + 300


async def test_a_session_that_wakes_up_half_rescued_has_the_lost_runs_executors_back(world: World) -> None:
    await world.queue.jobs.put_many([new() for _ in range(2 * MANY)])
    hand = await world.hand(MANY)
    assert len(await hand.claim(MANY)) == MANY
    world.clock.advance(31)
    (first,) = await world.queue.sessions.rescue_expired(until=world.clock.lease_now())
    assert (first.failed, first.ended) == (RESCUE_BATCH, False)

    await world.queue.sessions.beat(hand.session)

    assert len(await hand.claim(RESCUE_BATCH)) == RESCUE_BATCH


async def test_a_rescuer_stops_in_time_to_keep_its_own_session_and_goes_on_later(world: World) -> None:
    await world.queue.jobs.put_many([new() for _ in range(MANY)])
    dead = await world.hand(MANY)
    await dead.claim(MANY)
    world.clock.advance(31)

    parts = [await world.queue.sessions.rescue_expired(until=world.clock.lease_now()) for _ in range(3)]

    assert [[(rescue.failed, rescue.ended) for rescue in part] for part in parts] == [
        [(RESCUE_BATCH, False)],
        [(MANY - RESCUE_BATCH, True)],
        [],
    ]
