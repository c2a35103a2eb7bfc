"""One execution per caller, route and idempotency key; repetitions get the same answer, byte for byte."""

import asyncio
from dataclasses import replace

import pytest

from duly.domain.ids import Owner
from duly.domain.instants import SECOND, Instant
from duly.domain.requests import Answer, Claimed, KeyReused, Request, StillRunning
from tests.contracts.world import World

ASKED = Request(owner=Owner("ann"), route="POST /schedules", key="k-1", hash="abc")
ANSWER = Answer(status=201, content_type="application/json", body=b'{"\xff\x00":1}', headers=(("Location", "/s/1"),))


async def claimed(world: World, request: Request = ASKED) -> Claimed:
    claim = await world.queue.requests.claim(request)
    assert isinstance(claim, Claimed)
    return claim


async def test_a_repetition_gets_the_same_answer_byte_for_byte(world: World) -> None:
    await world.queue.requests.answer(ASKED, await claimed(world), ANSWER)
    world.clock.advance(3_600)

    assert await world.queue.requests.claim(ASKED) == ANSWER
    assert await (await world.another()).requests.claim(ASKED) == ANSWER


async def test_an_empty_answer_is_an_answer(world: World) -> None:
    nothing = Answer(status=204, content_type="", body=b"")
    await world.queue.requests.answer(ASKED, await claimed(world), nothing)

    assert await world.queue.requests.claim(ASKED) == nothing


async def test_of_many_callers_at_once_one_executes_and_the_others_are_told_to_wait(world: World) -> None:
    places = [world.queue, await world.another()]

    async def ask(number: int) -> str:
        try:
            return type(await places[number % 2].requests.claim(ASKED)).__name__
        except StillRunning as refusal:
            return f"StillRunning for {refusal.retry_after_s} s"

    outcomes = await asyncio.gather(*(ask(number) for number in range(12)))

    assert sorted(outcomes) == ["Claimed", *["StillRunning for 60 s"] * 11]


async def test_another_request_under_the_same_key_is_refused_before_and_after_the_answer(world: World) -> None:
    other = replace(ASKED, hash="def")
    claim = await claimed(world)
    with pytest.raises(KeyReused):
        await world.queue.requests.claim(other)
    await world.queue.requests.answer(ASKED, claim, ANSWER)
    with pytest.raises(KeyReused):
        await world.queue.requests.claim(other)


@pytest.mark.parametrize("other", [{"owner": "bob"}, {"route": "DELETE /schedules"}, {"key": "k-2"}])
async def test_a_key_is_its_callers_and_its_routes(world: World, other: dict[str, str]) -> None:
    first = await claimed(world)

    assert (await claimed(world, replace(ASKED, **other))).draw != first.draw  # type: ignore[arg-type]


async def test_when_the_lease_has_run_out_the_next_caller_takes_over_with_the_same_draw(world: World) -> None:
    first = await claimed(world)
    world.clock.advance(59.5)
    with pytest.raises(StillRunning) as refusal:
        await world.queue.requests.claim(ASKED)
    assert refusal.value.retry_after_s == 1
    world.clock.advance(0.5)

    second = await claimed(world)

    assert second.draw == first.draw
    assert second.token != first.token
    with pytest.raises(StillRunning):
        await world.queue.requests.claim(ASKED)


async def test_setting_the_time_of_day_ends_no_claim_and_a_reboot_ends_all(world: World) -> None:
    first = await claimed(world)
    world.clock.step(86_400)
    with pytest.raises(StillRunning):
        await world.queue.requests.claim(ASKED)

    world.clock.reboot("another-boot")

    assert (await claimed(world)).draw == first.draw


async def test_a_stale_answer_changes_nothing(world: World) -> None:
    stale = await claimed(world)
    world.clock.advance(60)
    standing = await claimed(world)

    await world.queue.requests.answer(ASKED, stale, replace(ANSWER, status=500))
    await world.queue.requests.abandon(ASKED, stale)

    with pytest.raises(StillRunning):
        await world.queue.requests.claim(ASKED)
    await world.queue.requests.answer(ASKED, standing, ANSWER)
    await world.queue.requests.answer(ASKED, standing, replace(ANSWER, status=500))
    await world.queue.requests.abandon(ASKED, standing)
    world.clock.advance(60)
    assert await world.queue.requests.claim(ASKED) == ANSWER


async def test_an_abandoned_request_may_be_tried_again_at_once_with_the_same_draw(world: World) -> None:
    first = await claimed(world)
    await world.queue.requests.abandon(ASKED, first)

    second = await claimed(world)

    assert (second.draw, second.token == first.token) == (first.draw, False)
    with pytest.raises(KeyReused):
        await world.queue.requests.claim(replace(ASKED, hash="def"))


async def test_old_requests_are_forgotten_and_their_keys_are_free(world: World) -> None:
    await world.queue.requests.answer(ASKED, await claimed(world), ANSWER)
    old = replace(ASKED, key="old")
    first = await claimed(world, old)
    world.clock.advance(86_400)
    fresh = replace(ASKED, key="fresh")
    await world.queue.requests.answer(fresh, await claimed(world, fresh), ANSWER)

    assert await world.queue.requests.prune(before=Instant(world.clock.now() - 3_600 * SECOND)) == 2

    assert await world.queue.requests.claim(fresh) == ANSWER
    assert (await claimed(world, old)).draw != first.draw
    await claimed(world, replace(ASKED, hash="def"))


async def test_setting_the_time_of_day_forward_forgets_no_request_that_somebody_executes(world: World) -> None:
    first = await claimed(world)
    world.clock.step(3 * 86_400)
    long_ago = Instant(world.clock.now() - 86_400 * SECOND)

    assert await world.queue.requests.prune(before=long_ago) == 0

    with pytest.raises(StillRunning):
        await world.queue.requests.claim(ASKED)
    world.clock.advance(59)
    assert await world.queue.requests.prune(before=long_ago) == 0
    world.clock.advance(1)
    assert await world.queue.requests.prune(before=long_ago) == 1
    assert (await claimed(world)).draw != first.draw


async def test_claims_of_another_era_are_forgotten_when_they_are_old(world: World) -> None:
    await claimed(world)
    world.clock.step(3 * 86_400)
    world.clock.reboot("another-boot")

    assert await world.queue.requests.prune(before=Instant(world.clock.now() - 86_400 * SECOND)) == 1


async def test_whoever_serves_requests_forgets_them_after_a_day(world: World) -> None:
    await world.queue.requests.answer(ASKED, await claimed(world), ANSWER)
    world.clock.advance(86_401)
    forgetting = asyncio.create_task(world.queue.requests.keep_forgetting())

    async with asyncio.timeout(30):
        while await world.queue.requests.claim(ASKED) == ANSWER:
            await world.clock.sleep(SECOND)

    forgetting.cancel()
    await asyncio.gather(forgetting, return_exceptions=True)
