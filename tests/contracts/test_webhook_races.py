"""Webhooks that are deleted, pruned or sent again at the very moment that something else is done with them."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from duly.application.deliveries import Deliveries
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.webhooks.deliveries import Answer, Breaker, DeliveryState
from duly.domain.webhooks.events import TEST, Event
from duly.ports.storage import Transaction
from duly.wire.webhooks import worded
from tests.contracts.test_webhooks import Post
from tests.contracts.world import World
from tests.receiver import receiving

pytestmark = pytest.mark.store("postgres")  # SQLite has one writer: nothing comes in between
_WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def _begun(world: World, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    """It has ended, or waits for whoever is at work."""
    task = asyncio.create_task(work)
    while not task.done() and not await world.rows(_WAITING):
        pass
    return task


async def test_no_delivery_goes_to_an_endpoint_that_is_deleted_while_an_end_is_fanned_out(
    postgres_world: World,
) -> None:
    world = postgres_world
    async with receiving() as receiver:
        post = Post(world)
        endpoint = await post.create(receiver)
        other, now = await world.another(), world.clock.now()
        event = Event(id="evt_1", type=TEST, owner=None, subject_id="job_1", occurred_at=now, body="{}")

        async def fan_out(tx: Transaction) -> "asyncio.Task[Any]":
            (found,) = await tx.webhooks.listening_to(None)
            deleting = await _begun(world, other.webhooks.delete(endpoint.id, owner="ann"))
            await tx.webhooks.tell(event, [("dlv_1", found.id)], now=now, give_up=Instant(now + SECOND))
            return deleting

        await (await world.transact(fan_out))

        assert await world.rows("SELECT * FROM webhook_deliveries") == [], "it would be due for ever"
        assert await world.rows("SELECT * FROM webhook_events") == []


async def test_one_that_is_sent_again_is_not_pruned(postgres_world: World) -> None:
    world = postgres_world
    async with receiving() as receiver:
        post = Post(world)
        await post.create(receiver)
        await post.ends_a_job()
        await post.goes()
        post.later(Micros(5 * SECOND))
        ended, other, now = await post.one(), await world.another(), world.clock.now()

        async def resend(tx: Transaction) -> "asyncio.Task[Any]":
            await tx.webhooks.send_again(ended.id, now=now, give_up=Instant(now + SECOND))
            return await _begun(world, other.webhooks.prune(before=now))

        assert await (await world.transact(resend)) == 0
        assert (await post.one()).state is DeliveryState.PENDING
        await post.goes()
        assert receiver.ids == [ended.event_id] * 2


async def test_failures_that_are_reported_at_once_are_all_counted(postgres_world: World) -> None:
    world = postgres_world
    async with receiving() as receiver:
        post = Post(world)
        endpoint = await post.create(receiver)
        for _ in range(2):
            await post.ends_a_job()
        deliveries = Deliveries(world.queue.storage, world.dice, worded)
        await deliveries.fan_out()
        first, second = await deliveries.claim(9)
        other = Deliveries((await world.another()).storage, world.dice, worded)

        async def report(tx: Transaction) -> "asyncio.Task[Any]":
            await deliveries._judge_host(tx, first, Answer(ms=1, status=500), world.clock.now())
            return await _begun(world, other.report(second, Answer(ms=1, status=500)))

        await (await world.transact(report))

        assert await world.transact(lambda tx: tx.webhooks.breaker(endpoint)) == Breaker(failures=2)
