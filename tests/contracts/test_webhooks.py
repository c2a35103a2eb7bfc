"""Webhooks: what ended is told, signed, at least once under one id, whatever its receiver does."""

import asyncio
from email.utils import format_datetime
from typing import Any

import pytest

from duly.application.deliveries import Deliveries
from duly.bootstrap import Queue
from duly.courier.courier import Courier
from duly.domain.errors import InvalidInput
from duly.domain.groups import NewGroup, NewMember
from duly.domain.instants import SECOND, Instant, Micros, moment_of
from duly.domain.jobs import COMPLETED, Ending, JobStatus
from duly.domain.pools import DEFAULT_POOL
from duly.domain.retries import NO_RETRY, RetryPolicy
from duly.domain.templates import NewTemplate
from duly.domain.webhooks.deliveries import (
    DEFAULT_PACE,
    GIVEN_UP,
    Answer,
    Delivery,
    DeliveryPace,
    DeliveryState,
    Errand,
    UnknownDelivery,
)
from duly.domain.webhooks.endpoints import (
    GONE,
    Endpoint,
    EndpointDisabled,
    EndpointExists,
    TooManyEndpoints,
    UnknownEndpoint,
)
from duly.domain.webhooks.signing import SignatureRefused, verify
from duly.settings import Settings
from duly.wire.webhooks import worded
from tests.contracts.forgetful import Twice
from tests.contracts.plans import launched, planned
from tests.contracts.world import FAILED, World, new
from tests.receiver import Receiver, answers, answers_then_resets, drips, floods, never_answers, receiving, resets

IMPATIENT = DeliveryPace(first_byte_within_s=1.0, all_within_s=2.0)
NO_ZONE = "Fri, 31 Dec 2199 23:59:59 -0000"
BEYOND_ALL_ZONES = "Mon, 01 Jan 2024 00:00:00 +99999999999999"
SKIPPED = Ending(status=JobStatus.SKIPPED, error="nothing to do")


class Post:
    """A queue that may call this machine, and a courier that goes when it is told to."""

    def __init__(self, world: World, pace: DeliveryPace = DEFAULT_PACE) -> None:
        self.world = world
        self.queue = Queue.on(world.queue.storage, world.dice, Settings(webhook_loopback="allowed"))
        self.courier = self.queue.courier(pace)

    async def create(self, receiver: Receiver, **given: Any) -> Endpoint:
        endpoint, _ = await self.queue.webhooks.create(
            receiver.url, **{"owner": "ann", "events": ["*"], "everything": True, **given}
        )
        return endpoint

    async def goes(self) -> None:
        """Until nothing is due."""
        while await self.courier.turn() <= 0:
            await self.courier.settled()

    async def all(self, **given: Any) -> list[Delivery]:
        return [*reversed(await self.queue.webhooks.deliveries(owner=None, **given))]

    async def one(self) -> Delivery:
        (delivery,) = await self.all()
        return delivery

    async def log(self) -> list[tuple[int | None, str | None]]:
        _, log = await self.queue.webhooks.delivery((await self.one()).id, owner=None)
        return [(each.status, each.error) for each in log]

    def later(self, span: Micros) -> None:
        self.world.clock.advance(micros=span)

    async def ends_a_job(self, ending: Ending = COMPLETED, **given: Any) -> str:
        job_id = await self.world.put(**{"retry": NO_RETRY, **given})
        hand = await self.world.hand()
        await hand.finish(*await hand.claim(), ending=ending)
        return job_id


@pytest.mark.req("DEC-009")
async def test_an_ended_job_is_told_once_in_the_words_of_the_api_and_signed(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        endpoint, secret = await post.queue.webhooks.create(receiver.url, owner="ann", everything=True)
        job_id = await post.ends_a_job()
        await post.goes()
        await post.goes()

        (got,) = receiver.received
        now_s = world.clock.now() // SECOND
        delivery = await post.one()
        assert verify(got.headers, got.body, [secret], now_s=now_s) == delivery.event_id
        told = got.told
        assert (told["type"], told["data"]["id"], told["data"]["status"]) == ("job.completed", job_id, "COMPLETED")
        assert set(told) == {"type", "timestamp", "data"}
        assert (delivery.state, delivery.attempts, delivery.status) == (DeliveryState.DELIVERED, 1, 200)
        assert (delivery.subject_id, delivery.endpoint_id) == (job_id, endpoint.id)
        assert await post.all(about=job_id) == [delivery]
        with pytest.raises(SignatureRefused):
            verify(got.headers, got.body + b" ", [secret], now_s=now_s)


@pytest.mark.req("DEC-009")
async def test_what_ends_a_job_tells_it_whatever_it_is(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        await post.create(receiver)
        await post.ends_a_job(COMPLETED)
        await post.ends_a_job(FAILED)
        await post.ends_a_job(SKIPPED)
        await world.queue.jobs.cancel(await world.put(), reason="no more")
        hand = await world.hand(lease=Micros(SECOND))
        await world.put(retry=NO_RETRY)
        await hand.claim()
        post.later(Micros(10 * SECOND))
        await world.queue.sessions.rescue_expired()
        await post.goes()

        types = [each.told["type"] for each in receiver.received]
        assert sorted(types) == ["job.cancelled", "job.completed", "job.failed", "job.failed", "job.skipped"]
        assert len(set(receiver.ids)) == 5


@pytest.mark.req("DEC-009")
async def test_a_failed_attempt_that_is_tried_again_is_told_as_such(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        await post.create(receiver)
        await world.put(retry=RetryPolicy(max_attempts=2, backoff_ms=0))
        hand = await world.hand()
        await hand.fail(*await hand.claim())
        await world.queue.jobs.stage()
        await hand.fail(*await hand.claim())
        await post.goes()

        assert [each.told["type"] for each in receiver.received] == ["job.retrying", "job.failed"]


@pytest.mark.req("DEC-009")
async def test_a_template_and_a_group_tell_the_address_they_name_and_nobody_else(world: World) -> None:
    async with receiving() as one, receiving() as another:
        post = Post(world)
        await post.queue.templates.create(NewTemplate(name="count", kind="count", webhook_url=one.url), owner="ann")
        await post.queue.jobs.put_from("count", {}, owner="ann")
        members = [NewMember(job=new("work", retry=NO_RETRY)), NewMember(job=new("work", retry=NO_RETRY))]
        group = await post.queue.groups.create(NewGroup(members=members, webhook_url=another.url), owner="ann")
        hand = await world.hand()
        await hand.work_off()
        await hand.work_off(pool=DEFAULT_POOL)
        await post.goes()

        assert [each.told["type"] for each in one.received] == ["job.completed"]
        (told,) = [each.told for each in another.received]
        assert (told["type"], told["data"]["id"]) == ("group.completed", group.id)
        assert told["data"]["status"] == "COMPLETED"
        endpoints = await post.queue.webhooks.list(owner="ann")
        assert sorted(each.url for each in endpoints) == sorted([one.url, another.url])
        assert all(each.events == () for each in endpoints)


@pytest.mark.req("DEC-009")
async def test_a_run_of_a_schedule_is_told_to_its_owner_alone(world: World) -> None:
    async with receiving() as anns, receiving() as bobs, receiving() as admins:
        post = Post(world)
        await post.create(anns, everything=False, events=["run.*"])
        await post.create(bobs, everything=False, owner="bob")
        await post.create(admins, owner="root", events=["job.*"])
        await planned(world)
        row = await launched(world, retry=NO_RETRY)
        hand = await world.hand()
        await hand.finish(*await hand.claim())
        await post.goes()

        (told,) = [each.told for each in anns.received]
        assert (told["type"], told["data"]["id"], told["data"]["owner"]) == ("run.success", row.id, "ann")
        assert [each.told["type"] for each in admins.received] == ["job.completed"]
        assert bobs.received == []


@pytest.mark.req("DEC-009")
async def test_three_retries_with_growing_pauses_then_it_has_failed_and_can_be_sent_again(world: World) -> None:
    async with receiving(answers(400, "no\x00pe")) as receiver:
        post = Post(world)
        await post.create(receiver)
        await post.ends_a_job()
        waits = []
        await post.goes()
        while (delivery := await post.one()).state is DeliveryState.PENDING:
            waits.append(delivery.due_at - world.clock.now())
            post.later(Micros(waits[-1]))
            await post.goes()

        assert len(receiver.received) == 4
        assert len(set(receiver.ids)) == 1
        for wait, longest_s in zip(waits, (30, 120, 480), strict=True):
            assert longest_s * SECOND // 2 <= wait <= longest_s * SECOND
        assert (delivery.state, delivery.status, delivery.error) == (DeliveryState.FAILED, 400, "answered 400")
        assert await post.log() == [(400, "answered 400")] * 4
        _, log = await post.queue.webhooks.delivery(delivery.id, owner=None)
        assert {each.excerpt for each in log} == {"no pe"}
        post.later(Micros(3_600 * SECOND))
        await post.goes()
        assert len(receiver.received) == 4

        receiver.manners = [answers(204)]
        await post.queue.webhooks.resend(delivery.id, owner="ann")
        await post.goes()
        assert (await post.one()).state is DeliveryState.DELIVERED
        assert receiver.ids == [delivery.event_id] * 5


@pytest.mark.parametrize(
    ("manner", "met"),
    [
        (answers(302, location="http://127.0.0.1:1/"), (302, "answered 302: redirects are not followed")),
        (answers(500), (500, "answered 500")),
        (floods, (500, "answered 500")),
        (never_answers, (None, "no answer within 1 s")),
        (drips, (None, "no whole answer within 2 s")),
    ],
)
@pytest.mark.req("DEC-009")
async def test_a_receiver_that_misbehaves_is_tried_again_under_the_same_id(
    world: World, manner: Any, met: tuple[int | None, str]
) -> None:
    async with receiving(manner, answers(200)) as receiver:
        post = Post(world, IMPATIENT)
        await post.create(receiver)
        await post.ends_a_job()
        await post.goes()
        assert await post.log() == [met]
        assert (await post.one()).state is DeliveryState.PENDING

        post.later(Micros(30 * SECOND))
        await post.goes()
        assert (await post.one()).state is DeliveryState.DELIVERED
        assert await post.log() == [met, (200, None)]
        assert len(set(receiver.ids)) == 1


async def test_a_connection_that_is_reset_before_an_answer_is_tried_again(world: World) -> None:
    async with receiving(resets, answers(200)) as receiver:
        post = Post(world)
        await post.create(receiver)
        await post.ends_a_job()
        await post.goes()
        ((status, error),) = await post.log()
        assert status is None
        assert error is not None

        post.later(Micros(30 * SECOND))
        await post.goes()
        assert (await post.one()).state is DeliveryState.DELIVERED


async def test_a_status_that_has_arrived_counts_whatever_follows(world: World) -> None:
    async with receiving(answers_then_resets) as receiver:
        post = Post(world)
        await post.create(receiver)
        await post.ends_a_job()
        await post.goes()

        assert (await post.one()).state is DeliveryState.DELIVERED
        assert await post.log() == [(200, None)]


async def test_410_disables_the_endpoint_and_what_waited_for_it_has_failed(world: World) -> None:
    async with receiving(answers(500), answers(410)) as receiver:
        post = Post(world)
        endpoint = await post.create(receiver)
        await post.ends_a_job()
        await post.goes()
        await post.ends_a_job()
        await post.goes()

        gone = await post.queue.webhooks.get(endpoint.id, owner="ann")
        assert gone.disabled_reason == GONE
        assert [each.state for each in await post.all()] == [DeliveryState.FAILED] * 2
        with pytest.raises(EndpointDisabled):
            await post.queue.webhooks.resend((await post.all())[0].id, owner="ann")
        with pytest.raises(EndpointDisabled):
            await post.queue.webhooks.test(endpoint.id, owner="ann")

        await post.ends_a_job()
        await post.goes()
        assert len(await post.all()) == 2

        receiver.manners = [answers(200)]
        await post.queue.webhooks.enable(endpoint.id, owner="ann")
        await post.queue.webhooks.resend((await post.all())[0].id, owner="ann")
        await post.goes()
        assert [each.state for each in await post.all()] == [DeliveryState.DELIVERED, DeliveryState.FAILED]


@pytest.mark.parametrize(
    ("asked", "waited_s"),
    [
        ("300", 300),
        ("0", 15),
        ("999999", 3_600),
        ("9" * 10, 3_600),
        ("9" * 9_000, 3_600),
        ("0" * 10 + "300", 300),
        *((each, 15) for each in ("nonsense", "-5", "12.5", "1e9", "300, 300", "", BEYOND_ALL_ZONES, NO_ZONE)),
    ],
)
async def test_retry_after_is_honoured_within_an_hour(world: World, asked: str, waited_s: int) -> None:
    async with receiving(answers(429, retry_after=asked)) as receiver:
        post = Post(world)
        await post.create(receiver)
        await post.ends_a_job()
        await post.goes()

        wait = (await post.one()).due_at - world.clock.now()
        assert waited_s * SECOND <= wait <= max(waited_s, 30) * SECOND


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("ahead_s", "waited_s"), [(300, 300), (-300, 15), (10 * 365 * 86_400, 3_600)], ids=["soon", "past", "absurd"]
)
async def test_retry_after_may_be_a_date(world: World, status: int, ahead_s: int, waited_s: int) -> None:
    asked = format_datetime(moment_of(Instant(world.clock.now() + ahead_s * SECOND)), usegmt=True)
    async with receiving(answers(status, retry_after=asked)) as receiver:
        post = Post(world)
        await post.create(receiver)
        await post.ends_a_job()
        await post.goes()

        wait = (await post.one()).due_at - world.clock.now()
        # A date has whole seconds.
        assert (waited_s - 1) * SECOND <= wait <= max(waited_s, 30) * SECOND


@pytest.mark.req("RISK-03")
async def test_a_host_that_fails_is_left_alone_then_tried_once_and_no_try_is_used_up(world: World) -> None:
    async with receiving(answers(500)) as receiver:
        post = Post(world)
        await post.create(receiver)
        for _ in range(5):
            await post.ends_a_job()
        await post.goes()
        assert len(receiver.received) == 5

        for _ in range(20):
            await post.ends_a_job()
        await post.goes()
        assert len(receiver.received) == 5, "the breaker is open"

        post.later(Micros(61 * SECOND))
        await post.goes()
        assert len(receiver.received) == 6, "half open: one is let through"
        post.later(Micros(61 * SECOND))
        await post.goes()
        assert len(receiver.received) == 6, "it is left alone for longer"

        receiver.manners = [answers(200)]
        for _ in range(8):
            post.later(Micros(61 * SECOND))
            await post.goes()
        assert [each.state for each in await post.all()] == [DeliveryState.DELIVERED] * 25
        assert max(each.attempts for each in await post.all()) <= 3
        assert len(set(receiver.ids)) == 25


@pytest.mark.req("RISK-03")
async def test_a_host_that_one_owner_finds_broken_is_open_to_others(world: World) -> None:
    async with receiving(answers(500)) as receiver:
        post = Post(world)
        await post.create(receiver)
        for _ in range(5):
            await post.ends_a_job()
        await post.goes()
        bobs = await post.create(receiver, owner="bob")
        await post.queue.webhooks.test(bobs.id, owner="bob")
        await post.goes()

        assert len(receiver.received) == 6


@pytest.mark.req("RISK-03", error=True)
@pytest.mark.req("DEC-009", error=True)
async def test_what_cannot_be_delivered_within_a_day_is_listed_as_failed(world: World) -> None:
    async with receiving(answers(500)) as receiver:
        post = Post(world)
        await post.create(receiver)
        for _ in range(6):
            await post.ends_a_job()
        await post.goes()
        post.later(Micros(25 * 3_600 * SECOND))
        await post.goes()

        last = await post.all()
        assert {each.state for each in last} == {DeliveryState.FAILED}
        assert {each.error for each in last} == {GIVEN_UP}


async def test_a_claim_that_is_lost_changes_nothing_and_the_delivery_is_made_again(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        await post.create(receiver)
        await post.ends_a_job()
        deliveries = Deliveries(world.queue.storage, world.dice, worded)
        await deliveries.fan_out()
        (first,) = await deliveries.claim(9)
        assert await deliveries.claim(9) == [], "while it lives, nobody else gets it"

        post.later(Micros(61 * SECOND))
        (second,) = await deliveries.claim(9)
        assert second.delivery.event_id == first.delivery.event_id
        assert not await deliveries.report(first, Answer(ms=1, status=200))
        assert (await post.one()).state is DeliveryState.PENDING
        assert await deliveries.report(second, Answer(ms=1, status=200))
        assert not await deliveries.report(second, Answer(ms=1, status=500))
        assert (await post.one()).state is DeliveryState.DELIVERED
        assert await post.log() == [(200, None)]


async def test_two_couriers_do_not_double_while_they_live(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        await post.create(receiver)
        for _ in range(40):
            await post.ends_a_job()
        other = Queue.on((await world.another()).storage, world.dice, Settings(webhook_loopback="allowed"))
        another = Post(world)
        another.queue, another.courier = other, other.courier()
        await asyncio.gather(post.goes(), another.goes())
        await post.goes()

        assert len(receiver.ids) == len(set(receiver.ids)) == 40
        assert {each.state for each in await post.all()} == {DeliveryState.DELIVERED}


async def test_the_old_secret_signs_beside_the_new_one_for_as_long_as_it_was_told(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        endpoint, old = await post.queue.webhooks.create(receiver.url, owner="ann")
        _, new_secret = await post.queue.webhooks.rotate(endpoint.id, owner="ann", keep_old_s=60)
        await post.queue.webhooks.test(endpoint.id, owner="ann")
        await post.goes()
        post.later(Micros(61 * SECOND))
        await post.queue.webhooks.test(endpoint.id, owner="ann")
        await post.goes()

        both, alone = receiver.received
        assert len(both.headers["webhook-signature"].split()) == 2
        for secret in (old, new_secret):
            verify(both.headers, both.body, [secret], now_s=int(both.headers["webhook-timestamp"]))
        verify(alone.headers, alone.body, [new_secret], now_s=int(alone.headers["webhook-timestamp"]))
        with pytest.raises(SignatureRefused):
            verify(alone.headers, alone.body, [old], now_s=int(alone.headers["webhook-timestamp"]))
        assert old not in repr(endpoint)


async def test_others_endpoints_and_deliveries_do_not_exist(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        webhooks = post.queue.webhooks
        endpoint = await post.create(receiver)
        delivery = await webhooks.test(endpoint.id, owner="ann")

        for refused in (
            webhooks.get(endpoint.id, owner="bob"),
            webhooks.rotate(endpoint.id, owner="bob"),
            webhooks.disable(endpoint.id, owner="bob"),
            webhooks.enable(endpoint.id, owner="bob"),
            webhooks.update(endpoint.id, owner="bob", note="mine"),
            webhooks.delete(endpoint.id, owner="bob"),
            webhooks.test(endpoint.id, owner="bob"),
        ):
            with pytest.raises(UnknownEndpoint):
                await refused
        for unseen in (webhooks.delivery(delivery.id, owner="bob"), webhooks.resend(delivery.id, owner="bob")):
            with pytest.raises(UnknownDelivery):
                await unseen
        assert await webhooks.list(owner="bob") == []
        assert await webhooks.deliveries(owner="bob") == []


@pytest.mark.req("DEC-009", error=True)
async def test_an_address_is_taken_once_and_an_owner_has_so_many(world: World) -> None:
    queue = world.queue
    await queue.webhooks.create("https://example.com/0", owner="ann")
    with pytest.raises(EndpointExists):
        await queue.webhooks.create("https://example.com/0", owner="ann")
    await queue.webhooks.create("https://example.com/0", owner="bob")
    for number in range(1, 100):
        await queue.webhooks.create(f"https://example.com/{number}", owner="ann")
    with pytest.raises(TooManyEndpoints):
        await queue.webhooks.create("https://example.com/100", owner="ann")
    with pytest.raises(InvalidInput):
        await queue.templates.create(NewTemplate(name="t", kind="k", webhook_url="https://10.0.0.1/"), owner="ann")


async def test_deleting_an_endpoint_and_pruning_leave_nothing_behind(world: World) -> None:
    async with receiving(answers(200), answers(400)) as receiver:
        post = Post(world)
        endpoint = await post.create(receiver)
        await post.ends_a_job()
        await post.goes()
        await post.ends_a_job()
        await post.goes()
        post.later(Micros(5 * SECOND))

        assert await post.queue.webhooks.prune(before=Instant(world.clock.now())) == 1
        assert [each.state for each in await post.all()] == [DeliveryState.PENDING], "what is under way stays"
        await post.queue.webhooks.delete(endpoint.id, owner="ann")
        for table in ("endpoints", "outbox", "events", "deliveries", "attempts"):
            assert await world.rows(f"SELECT * FROM webhook_{table}") == [], table


async def test_what_is_known_of_a_host_is_forgotten_with_the_last_endpoint_there(world: World) -> None:
    async with receiving(answers(500)) as receiver:
        post = Post(world)
        webhooks = post.queue.webhooks
        one = await post.create(receiver)
        another, _ = await webhooks.create(f"{receiver.url}/other", owner="ann")
        bobs = await post.create(receiver, owner="bob")
        for endpoint in (one, bobs):
            await webhooks.test(endpoint.id, owner=endpoint.owner)
        await post.goes()

        known = "SELECT owner_user_id FROM webhook_hosts ORDER BY owner_user_id"
        await webhooks.delete(one.id, owner="ann")
        assert await world.rows(known) == [("ann",), ("bob",)], "she has another there"
        await webhooks.delete(another.id, owner="ann")
        assert await world.rows(known) == [("bob",)]
        await webhooks.delete(bobs.id, owner="bob")
        assert await world.rows(known) == []


async def test_nothing_is_written_down_while_nobody_asks(world: World) -> None:
    post = Post(world)
    await post.ends_a_job()

    assert await world.rows("SELECT * FROM webhook_outbox") == []
    assert await post.courier.turn() > Micros(10 * SECOND)


class _Deaf:
    async def send(self, errand: Errand) -> Answer:
        raise RuntimeError("broken")


async def test_a_courier_that_breaks_loses_nothing(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        await post.create(receiver)
        await post.ends_a_job()
        broken = Courier(Deliveries(world.queue.storage, world.dice, worded), _Deaf, telemetry=post.queue.telemetry)
        await broken.turn()
        await broken.settled()
        post.later(Micros(61 * SECOND))
        await post.goes()

        assert (await post.one()).state is DeliveryState.DELIVERED


async def test_a_work_whose_answer_is_lost_does_nothing_twice(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        forgetful = Queue.on(Twice(world.queue.storage, world.clock), world.dice, Settings(webhook_loopback="allowed"))
        post.queue, post.courier = forgetful, forgetful.courier()
        endpoint, old = await forgetful.webhooks.create(receiver.url, owner="ann", everything=True)
        rotated, new_secret = await forgetful.webhooks.rotate(endpoint.id, owner="ann")
        assert (rotated.secret, rotated.old_secret) == (new_secret, old)
        await post.ends_a_job()
        await forgetful.webhooks.test(endpoint.id, owner="ann")
        await post.goes()

        assert sorted(each.told["type"] for each in receiver.received) == ["job.completed", "webhook.test"]
        assert {each.state for each in await post.all()} == {DeliveryState.DELIVERED}
        assert {each.attempts for each in await post.all()} == {1}
        await forgetful.webhooks.disable(endpoint.id, owner="ann")
        await forgetful.webhooks.delete(endpoint.id, owner="ann")
