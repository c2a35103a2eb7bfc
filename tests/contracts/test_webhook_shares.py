"""A receiver that is slow holds up its own webhook, and nobody else's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from duly.application.deliveries import Deliveries
from duly.domain.instants import SECOND, Micros
from duly.domain.webhooks.deliveries import DEFAULT_PACE, Answer, DeliveryPace
from duly.domain.webhooks.endpoints import Endpoint
from duly.wire.webhooks import worded
from tests.contracts.test_webhooks import Post
from tests.contracts.world import World
from tests.receiver import answers, never_answers, receiving

# Nobody loses patience while the test lasts.
PATIENT = DeliveryPace(first_byte_within_s=300.0, all_within_s=300.0, lease=Micros(600 * SECOND))
MANY = 100


@asynccontextmanager
async def delivering(post: Post) -> AsyncIterator[None]:
    running = asyncio.create_task(post.courier.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def tell(post: Post, endpoint: Endpoint, times: int = 1) -> None:
    for _ in range(times):
        await post.queue.webhooks.test(endpoint.id, owner=endpoint.owner)


@pytest.mark.req("RISK-03")
@pytest.mark.parametrize("owner", ["ann", "bob"])
async def test_a_webhook_whose_receiver_never_answers_leaves_places_for_others(world: World, owner: str) -> None:
    async with receiving(never_answers) as silent, receiving() as well:
        post = Post(world, PATIENT)
        await tell(post, await post.create(silent), MANY)
        await tell(post, await post.create(well, owner=owner))
        async with delivering(post):
            await asyncio.wait_for(well.has_received.wait(), 60)
            await asyncio.wait_for(silent.has_received.wait(), 60)

            assert await world.rows("SELECT * FROM webhook_attempts WHERE status IS NULL") == []
            assert 0 < len(silent.received) <= PATIENT.most_at_once // 2, "its calls are still under way, and only some"


@pytest.mark.req("RISK-03")
async def test_owners_that_share_a_slow_host_leave_places_for_others(world: World) -> None:
    async with receiving(never_answers) as silent, receiving() as well:
        post = Post(world, PATIENT)
        for number in range(PATIENT.most_at_once + 3):
            await tell(post, await post.create(silent, owner=f"owner {number}"))
        await tell(post, await post.create(well, owner="bob"))
        async with delivering(post):
            await asyncio.wait_for(well.has_received.wait(), 60)
            await asyncio.wait_for(silent.has_received.wait(), 60)

            assert 0 < len(silent.received) <= PATIENT.most_at_once // 2


async def test_calls_under_way_count_in_the_shares_of_the_next_claim(world: World) -> None:
    async with receiving() as one, receiving() as another:
        post = Post(world)
        await tell(post, await post.create(one), MANY)
        deliveries = Deliveries(world.queue.storage, world.dice, worded)
        first = await deliveries.claim(32)
        assert len(first) == 11
        under_way = [each.endpoint for each in first]
        assert await deliveries.claim(21, under_way=under_way) == []

        await tell(post, await post.create(another, owner="bob"), MANY)
        bobs = await deliveries.claim(21, under_way=under_way)
        assert {each.endpoint.owner for each in bobs} == {"bob"}
        for errand in first:
            await deliveries.report(errand, Answer(ms=1, status=200))
        again = await deliveries.claim(32 - len(bobs), under_way=[each.endpoint for each in bobs])
        assert {each.endpoint.owner for each in again} >= {"ann"}


async def test_what_waits_behind_a_host_that_is_left_alone_is_sent(world: World) -> None:
    async with receiving(answers(500)) as broken, receiving() as well:
        post = Post(world)
        endpoint = await post.create(broken)
        await tell(post, endpoint, DEFAULT_PACE.breaks_after)
        await post.goes()
        await tell(post, endpoint, MANY)
        await tell(post, await post.create(well, owner="bob"))
        await post.courier.turn()
        await post.courier.settled()

        assert len(well.received) == 1, "at the first turn"
        assert len(broken.received) == DEFAULT_PACE.breaks_after
