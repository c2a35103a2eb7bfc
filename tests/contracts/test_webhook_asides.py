"""An end that cannot be read is set aside with its reason, where people see it; whatever is behind it is told."""

import json

import pytest

from duly.application.deliveries import Deliveries
from duly.domain.jobs import Ending, JobStatus
from duly.domain.payloads import Payload
from duly.domain.webhooks.deliveries import DeliveryState
from duly.storage.sql import webhook_rows
from duly.wire.webhooks import worded
from tests.contracts.test_webhooks import Post
from tests.contracts.world import World
from tests.receiver import receiving

HALF_A_PAIR = Ending(status=JobStatus.COMPLETED, result=Payload('{"x":"\\ud800"}'))


async def spoil(world: World, subject: str, job_id: str) -> None:
    await world.rows(f"UPDATE webhook_outbox SET subject = '{subject}' WHERE subject LIKE '%{job_id}%'")


@pytest.mark.req("DEC-009")
@pytest.mark.req("DEC-009", error=True)
@pytest.mark.parametrize(
    "broken",
    ["", "no json", "[]", "{}", "7", "null", '["{}"', json.dumps(["{}", *range(26)]), json.dumps([None] * 27)],
)
async def test_a_row_that_cannot_be_read_holds_up_nobody_and_its_log_says_why(world: World, broken: str) -> None:
    async with receiving() as receiver:
        post = Post(world)
        await post.create(receiver)
        bad, good = await post.ends_a_job(), await post.ends_a_job()
        await spoil(world, broken.replace("{}", bad), bad)
        await post.goes()

        assert [each.told["data"]["id"] for each in receiver.received] == [good]
        (failed,) = await post.all(state=DeliveryState.FAILED)
        assert (failed.type, failed.attempts) == ("job.unreadable", 0)
        assert str(failed.error).startswith("cannot be read: ")
        assert failed.subject_id == (bad if bad in broken.replace("{}", bad) and broken[0] == "[" else "unknown")
        aside, reason = await post.queue.webhooks.set_aside()
        assert aside == 1
        assert failed.error == f"cannot be read: {reason}"
        deliveries = Deliveries(world.queue.storage, world.dice, worded)
        assert await deliveries.next_at() == (True, None), "it is not looked at all the time"


@pytest.mark.req("DEC-009")
async def test_what_an_older_program_did_not_know_is_told_by_a_newer_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as receiver:
        post = Post(world)
        await post.create(receiver)
        with monkeypatch.context() as older:
            older.delitem(webhook_rows._SUBJECTS, "job")
            job_id = await post.ends_a_job()
            await post.goes()
            await Post(world).goes()

            assert receiver.received == []
            assert await post.queue.webhooks.set_aside() == (1, "ValueError: this version knows no job")
            assert [each.type for each in await post.all()] == ["job.unreadable"], "once, however many have looked"
        await post.goes()
        assert receiver.received == [], "couriers look again when they start"
        await Post(world).goes()

        (got,) = receiver.received
        assert (got.told["type"], got.told["data"]["id"]) == ("job.completed", job_id)
        assert await post.queue.webhooks.set_aside() == (0, None)
        assert await world.rows("SELECT * FROM webhook_outbox") == []


async def test_what_cannot_be_worded_is_set_aside_too(world: World) -> None:
    async with receiving() as receiver:
        post = Post(world)
        await post.create(receiver)
        bad, good = await post.ends_a_job(HALF_A_PAIR), await post.ends_a_job()
        await post.goes()

        assert [each.told["data"]["id"] for each in receiver.received] == [good]
        (failed,) = await post.all(about=bad)
        assert failed.type == "job.unreadable"


async def test_only_those_who_may_have_wanted_it_are_shown_it_and_sending_it_again_tells_what_is_known(
    world: World,
) -> None:
    async with receiving() as all_, receiving() as failures, receiving() as groups, receiving() as bobs:
        post = Post(world)
        every = await post.create(all_)
        some = await post.create(failures, events=["job.failed"])
        await post.create(groups, events=["group.*"])
        await post.create(bobs, owner="bob", everything=False)
        bad = await post.ends_a_job()
        await spoil(world, f'["{bad}"', bad)
        await post.goes()

        found = await post.all()
        assert sorted(each.endpoint_id for each in found) == sorted([every.id, some.id])
        await post.queue.webhooks.resend(found[0].id, owner="ann")
        await post.goes()
        (got,) = [*all_.received, *failures.received]
        assert got.told["type"] == "job.unreadable"
        assert got.told["data"]["id"] == bad
