"""Whoever asks for a kind that no live worker runs is told so; nothing is refused."""

from duly.domain.instants import SECOND, Micros
from tests.contracts.world import World


async def test_a_kind_is_known_while_a_session_that_said_it_lives(world: World) -> None:
    sessions = world.queue.sessions
    assert await sessions.warning_about("send") == "no worker is running, so nothing runs 'send' yet"

    lease = Micros(10 * SECOND)
    await sessions.open(name="a", kinds=["send", "shout"], lease=lease)
    await sessions.open(name="b", kinds=["sort"], lease=lease)

    assert await sessions.live_kinds() == frozenset({"send", "shout", "sort"})
    assert await sessions.warning_about("send") is None
    said = await sessions.warning_about("sent")
    assert said == "no worker that is running has a handler for 'sent'; did you mean 'send'?"

    world.clock.advance(11)
    assert await sessions.live_kinds() == frozenset()


async def test_of_a_session_that_does_not_say_nothing_is_told(world: World) -> None:
    await world.queue.sessions.open(name="a", kinds=["send"])
    await world.queue.sessions.open(name="older")

    assert await world.queue.sessions.live_kinds() is None
    assert await world.queue.sessions.warning_about("sent") is None
