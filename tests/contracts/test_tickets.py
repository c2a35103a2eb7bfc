"""Tickets: a direct call's place, next in turn before the queue, and nothing preempted for it."""

import asyncio

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName, SessionId, TicketId
from duly.domain.instants import Micros
from duly.domain.pools import UnknownPool
from duly.domain.sessions import SessionLost
from duly.domain.tickets import Ticket, TicketState, UnknownTicket
from tests.contracts.world import Hand, World

ONE = PoolName("one")
HOUR = Micros(3_600_000_000)


async def _request(world: World, hand: Hand, pool: PoolName = ONE, wait: Micros = HOUR) -> Ticket:
    return await world.queue.tickets.request(pool, session=hand.session, wait=wait)


@pytest.mark.req("DEC-004")
async def test_an_idle_pool_gives_a_place_at_once(world: World) -> None:
    await world.pool(ONE, 1)
    hand = await world.hand()

    ticket = await _request(world, hand)

    assert ticket.state is TicketState.HELD
    assert await world.used(ONE) == 1
    assert await world.rows("SELECT id FROM jobs") == [], "no job of its own"


@pytest.mark.req("DEC-004")
async def test_in_a_busy_pool_a_ticket_comes_after_the_run_and_before_the_queue(world: World) -> None:
    await world.pool(ONE, 1)
    await world.put("running", pool=ONE)
    worker, caller = await world.hand(), await world.hand()
    (running,) = await worker.claim(1, ONE)
    await world.put("queued", pool=ONE, priority=32_767)

    ticket = await _request(world, caller)
    assert ticket.state is TicketState.WAITING
    assert await world.state(running.id) == "running", "nothing is preempted"

    await worker.finish(running)
    assert await worker.claim(1, ONE) == [], "the place is kept free"
    ticket = await world.queue.tickets.take(ticket.id)
    assert ticket.state is TicketState.HELD

    await world.queue.tickets.release(ticket.id)
    assert [job.kind for job in await worker.claim(1, ONE)] == ["queued"]


@pytest.mark.req("DEC-004")
async def test_tickets_are_served_first_come_first_served(world: World) -> None:
    await world.pool(ONE, 1)
    hand = await world.hand()
    tickets: list[Ticket] = []
    for _ in range(5):
        tickets.append(await _request(world, hand))
        world.clock.advance(1)
    in_turn = [ticket.id for ticket in tickets]
    served: list[TicketId] = []

    for _ in range(5):
        taken = [await world.queue.tickets.take(ticket.id) for ticket in reversed(tickets)]
        (held,) = [ticket for ticket in taken if ticket.state is TicketState.HELD]
        served.append(held.id)
        await world.queue.tickets.release(held.id)
        tickets = [ticket for ticket in tickets if ticket.id != held.id]

    assert served == in_turn


@pytest.mark.req("DEC-004")
async def test_a_later_ticket_cannot_overtake_even_when_a_place_is_free(world: World) -> None:
    await world.pool(ONE, 1)
    hand = await world.hand()
    held, first, second = [await _request(world, hand) for _ in range(3)]
    await world.queue.tickets.release(held.id)

    assert (await world.queue.tickets.take(second.id)).state is TicketState.WAITING
    assert (await world.queue.tickets.take(first.id)).state is TicketState.HELD


@pytest.mark.req("DEC-004")
async def test_releasing_twice_or_what_is_unknown_changes_nothing(world: World) -> None:
    await world.pool(ONE, 1)
    hand = await world.hand()
    ticket = await _request(world, hand)

    await world.queue.tickets.release(ticket.id)
    await world.queue.tickets.release(ticket.id)
    await world.queue.tickets.release(TicketId("tkt_unknown"))

    assert await world.used(ONE) == 0


@pytest.mark.req("DEC-004")
async def test_a_ticket_that_waited_too_long_expires_and_a_held_one_does_not(world: World) -> None:
    await world.pool(ONE, 1)
    hand = await world.hand()
    held = await _request(world, hand, wait=Micros(1))
    waiting = await _request(world, hand, wait=Micros(5_000_000))

    world.clock.advance(4)
    assert await world.queue.tickets.expire() == 0
    world.clock.advance(1)
    assert await world.queue.tickets.expire() == 1

    with pytest.raises(UnknownTicket):
        await world.queue.tickets.take(waiting.id)
    assert (await world.queue.tickets.take(held.id)).state is TicketState.HELD
    assert (await world.queue.pools.get(ONE)).tickets == 0


@pytest.mark.req("DEC-004")
async def test_the_tickets_of_a_dead_session_are_released(world: World) -> None:
    await world.pool(ONE, 1)
    dead = await world.hand()
    await _request(world, dead)
    await _request(world, dead)
    world.clock.advance(29)
    alive = await world.hand()
    waiting = await _request(world, alive)
    world.clock.advance(1)

    (rescue,) = await world.queue.sessions.rescue_expired()

    assert rescue.tickets == 2
    assert (await world.queue.tickets.take(waiting.id)).state is TicketState.HELD


@pytest.mark.req("DEC-004")
async def test_a_paused_pool_makes_tickets_wait(world: World) -> None:
    await world.pool(ONE, 1)
    await world.queue.pools.pause(ONE)
    hand = await world.hand()

    ticket = await _request(world, hand)
    assert ticket.state is TicketState.WAITING

    await world.queue.pools.open(ONE)
    assert (await world.queue.tickets.take(ticket.id)).state is TicketState.HELD


@pytest.mark.req("DEC-004")
async def test_callers_and_workers_at_once_never_exceed_the_limit(world: World) -> None:
    two = PoolName("two")
    await world.pool(two, 2)
    for n in range(30):
        await world.put(f"n{n}", pool=two)
    queues = [world.queue, await world.another()]
    hands = [await world.hand(1, queue=queues[n % 2]) for n in range(4)]
    inside = 0
    direct = 0
    ran: list[str] = []

    async def within(count: int) -> None:
        nonlocal inside
        inside += count
        assert inside <= 2
        await asyncio.sleep(0)
        inside -= count

    async def work(hand: Hand) -> None:
        while len(ran) < 30:
            claimed = await hand.claim(1, two)
            if claimed:
                await within(1)
                ran.append(claimed[0].kind)
                await hand.finish(*claimed)

    async def call(hand: Hand) -> None:
        nonlocal direct
        ticket = await hand.queue.tickets.request(two, session=hand.session, wait=HOUR)
        while ticket.state is TicketState.WAITING:
            ticket = await hand.queue.tickets.take(ticket.id)
        await within(1)
        direct += 1
        await hand.queue.tickets.release(ticket.id)

    await asyncio.gather(*(work(hand) for hand in hands), *(call(hands[n % 4]) for n in range(20)))

    assert (direct, len(ran), await world.used(two)) == (20, 30, 0)


@pytest.mark.req("DEC-004", error=True)
async def test_a_ticket_for_nowhere_by_nobody_or_for_ever_is_refused(world: World) -> None:
    await world.pool(ONE, 1)
    hand = await world.hand()
    before = await world.snapshot()

    with pytest.raises(UnknownPool):
        await _request(world, hand, PoolName("nowhere"))
    with pytest.raises(SessionLost):
        await world.queue.tickets.request(ONE, session=SessionId("ses_unknown"), wait=HOUR)
    for wait in (-1, 86_400_000_001, True):
        with pytest.raises(InvalidInput):
            await _request(world, hand, wait=Micros(wait))
    with pytest.raises(UnknownTicket):
        await world.queue.tickets.take(TicketId("tkt_unknown"))

    assert await world.snapshot() == before
