"""Putting jobs: durable when answered, all or nothing, one per key."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import Entry, Job, PutOutcome
from duly.domain.payloads import value_of
from duly.domain.pools import PoolDraining, UnknownPool
from duly.domain.retries import RetryPolicy
from tests.contracts.world import WIDE, World, new


async def test_a_job_is_kept_exactly_as_it_was_put(world: World) -> None:
    params = {"text": "naïve ☃ \U0001f600 'quote\" \\ \n", "n": 2**63 - 1, "f": 0.1, "deep": [{"a": [None, True]}]}

    put = await world.puts(
        "mail.send",
        params=params,
        key="k",
        lane="customer 7",
        resources=["ollama", "graphs"],
        priority=-5,
        retry=RetryPolicy(max_attempts=7, backoff_ms=11, backoff_cap_ms=13),
        timeout_ms=1_500,
    )

    job = await world.live(put.job_id)
    assert put.outcome is PutOutcome.CREATED
    assert value_of(job.payload) == params
    assert (job.kind, job.key, job.lane, job.pool) == ("mail.send", "k", "customer 7", WIDE)
    assert (job.resources, job.priority, job.timeout_ms) == (("graphs", "ollama"), -5, 1_500)
    assert job.retry == RetryPolicy(max_attempts=7, backoff_ms=11, backoff_cap_ms=13)
    assert (job.attempt, job.retry_of, job.chain) == (1, None, put.job_id)
    assert job.run_at == job.created_at == world.clock.now()


async def test_what_was_put_is_read_at_once_by_every_process(world: World) -> None:
    other = await world.another()

    for _ in range(20):
        job_id = await world.put("mine")
        assert (await other.jobs.get(job_id)).kind == "mine"
        theirs = await other.jobs.put(new("theirs"))
        assert (await world.live(theirs.job_id)).kind == "theirs"


async def test_many_jobs_are_put_in_the_order_given(world: World) -> None:
    puts = await world.queue.jobs.put_many([new(f"n{n}") for n in range(50)])

    assert [put.outcome for put in puts] == [PutOutcome.CREATED] * 50
    assert [(await world.live(put.job_id)).kind for put in puts] == [f"n{n}" for n in range(50)]
    assert await world.kinds() == [f"n{n}" for n in range(50)]


async def test_putting_nothing_is_no_error(world: World) -> None:
    assert await world.queue.jobs.put_many([]) == []


async def test_jobs_that_many_callers_put_at_once_are_all_there(world: World) -> None:
    other = await world.another()
    queues = [world.queue, other]

    puts = await asyncio.gather(*(queues[n % 2].jobs.put(new(f"n{n}")) for n in range(400)))

    assert len({put.job_id for put in puts}) == 400
    assert sorted(await world.kinds()) == sorted(f"n{n}" for n in range(400))


@pytest.mark.req("GRAPH-07", error=True)
async def test_one_unknown_pool_in_the_middle_and_none_of_many_is_written(world: World) -> None:
    await world.put("old", key="k", lane="lane")
    before = await world.snapshot()

    with pytest.raises(UnknownPool, match="nowhere"):
        await world.queue.jobs.put_many(
            [new("a"), new("b", key="k", lane="elsewhere"), new("c", pool="nowhere"), new("d", lane="lane")]
        )

    assert await world.snapshot() == before


@pytest.mark.req("CON-002", error=True)
@pytest.mark.parametrize("resources", [["nowhere"], ["graphs", "nowhere"]])
async def test_a_job_that_needs_an_unknown_resource_is_refused(world: World, resources: list[str]) -> None:
    before = await world.snapshot()

    with pytest.raises(UnknownPool, match="nowhere"):
        await world.put(resources=resources)
    with pytest.raises(UnknownPool, match="nowhere"):
        await world.queue.jobs.put_many([new("fine"), new(resources=resources)])

    assert await world.snapshot() == before


async def test_a_draining_pool_refuses_new_jobs_and_takes_retries(world: World) -> None:
    await world.put("running")
    hand = await world.hand()
    (claimed,) = await hand.claim()
    await world.queue.pools.drain(WIDE)

    with pytest.raises(PoolDraining):
        await world.put("new")
    with pytest.raises(PoolDraining):
        await world.queue.jobs.put_many([new("new")])
    await hand.fail(claimed)

    _, retry = await world.queue.jobs.chain(claimed.id)
    assert isinstance(retry, Job)
    assert (retry.state, retry.attempt) == ("backoff", 2)
    await world.queue.pools.open(WIDE)
    await world.put("new")
    assert await world.kinds() == ["new"]


# One per key.


@pytest.mark.req("GRAPH-07")
async def test_an_unlocked_job_with_the_same_key_is_replaced(world: World) -> None:
    first = await world.puts("first", key="k", priority=1, params={"n": 1})
    world.clock.advance(1)

    second = await world.puts("second", key="k", priority=2, params={"n": 2}, retry=RetryPolicy(max_attempts=9))

    job = await world.live(first.job_id)
    assert (second.job_id, second.outcome) == (first.job_id, PutOutcome.REPLACED)
    assert (job.kind, job.priority, value_of(job.payload), job.retry.max_attempts) == ("second", 2, {"n": 2}, 9)
    assert await world.kinds() == ["second"]


@pytest.mark.req("GRAPH-07")
async def test_a_replaced_job_moves_to_the_lane_pool_priority_and_time_of_the_newer_one(world: World) -> None:
    await world.pool("other", 5)
    job_id = await world.put("first", key="k", lane="old")
    behind = await world.put("behind", lane="old")
    head = await world.put("head", lane="new")

    put = await world.puts("second", key="k", lane="new", pool="other", priority=3)

    job = await world.live(job_id)
    assert (put.job_id, job.lane, job.pool, job.priority) == (job_id, "new", "other", 3)
    assert await world.state(behind) == "ready", "the lane that was left has a new head"
    assert (job.state, await world.state(head)) == ("ready", "waiting"), "the better one leads its new lane"
    later = Instant(world.clock.now() + 5_000_000)
    await world.puts("third", key="k", run_at=later)
    job = await world.live(job_id)
    assert (job.state, job.run_at, job.lane, job.pool) == ("scheduled", later, None, WIDE)
    assert await world.state(head) == "ready"


@pytest.mark.req("GRAPH-07")
@pytest.mark.parametrize("held", [False, True])
async def test_a_locked_job_with_the_same_key_is_left_alone(world: World, held: bool) -> None:
    first = await world.puts("first", key="k")
    hand = await world.hand()
    (claimed,) = await (hand.hold() if held else hand.claim())
    before = await world.snapshot()

    second = await world.puts("second", key="k", lane="lane", priority=9)

    assert (second.job_id, second.outcome) == (first.job_id, PutOutcome.LEFT)
    assert await world.snapshot() == before
    if not held:
        await hand.finish(claimed)
        assert (await world.ended(second.job_id)).kind == "first"


@pytest.mark.req("GRAPH-07")
async def test_a_key_is_free_again_when_its_job_has_ended(world: World) -> None:
    first = await world.puts("first", key="k")
    hand = await world.hand()
    await hand.work_off()

    second = await world.puts("second", key="k")

    assert second.outcome is PutOutcome.CREATED
    assert second.job_id != first.job_id


@pytest.mark.req("GRAPH-07")
async def test_a_retry_in_backoff_is_replaced_under_its_key_and_its_lane_goes_on(world: World) -> None:
    await world.put("first", key="k", lane="lane")
    behind = await world.put("behind", lane="lane")
    hand = await world.hand()
    (claimed,) = await hand.claim()
    await hand.fail(claimed)
    (_, retry) = await world.queue.jobs.chain(claimed.id)

    put = await world.puts("second", key="k")

    assert (put.job_id, put.outcome) == (retry.id, PutOutcome.REPLACED)
    assert await world.state(put.job_id) == "ready"
    assert await world.state(behind) == "ready"
    assert (await world.live(put.job_id)).attempt == 1


@pytest.mark.req("GRAPH-07")
async def test_the_same_key_twice_in_one_batch_ends_as_the_later_one(world: World) -> None:
    first, second = await world.queue.jobs.put_many([new("first", key="k", lane="z"), new("second", key="k", lane="a")])

    job = await world.live(first.job_id)
    assert (first.outcome, second.outcome) == (PutOutcome.CREATED, PutOutcome.REPLACED)
    assert (second.job_id, job.kind, job.lane) == (first.job_id, "second", "a")


@pytest.mark.req("GRAPH-07")
async def test_the_same_key_twice_in_one_batch_ends_as_the_later_one_behind_busy_lanes(world: World) -> None:
    await world.put("busy", lane="z")
    await world.put("busy", lane="a")

    first, second = await world.queue.jobs.put_many([new("first", key="k", lane="z"), new("second", key="k", lane="a")])

    job = await world.live(first.job_id)
    assert (first.outcome, second.outcome) == (PutOutcome.CREATED, PutOutcome.REPLACED)
    assert (second.job_id, job.kind, job.lane, job.state) == (first.job_id, "second", "a", "waiting")


@pytest.mark.req("GRAPH-07")
async def test_a_key_that_a_hundred_callers_put_at_once_makes_one_job(world: World) -> None:
    queues = [world.queue, await world.another(), await world.another()]

    puts = await asyncio.gather(*(queues[n % 3].jobs.put(new(f"n{n}", key="k")) for n in range(100)))

    outcomes = [put.outcome for put in puts]
    assert len({put.job_id for put in puts}) == 1
    assert outcomes.count(PutOutcome.CREATED) == 1
    assert outcomes.count(PutOutcome.REPLACED) == 99
    assert len(await world.kinds()) == 1


# A put that is repeated finds its own row.


@pytest.mark.req("GRAPH-07")
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("lane", [None, "lane"])
async def test_the_same_id_put_again_finds_its_job_even_when_it_has_ended(
    world: World, key: str | None, lane: str | None
) -> None:
    job = _job(world, new("once", key=key, lane=lane))
    hand = await world.hand()

    outcomes = [await _put_as_is(world, job)]
    outcomes += [await _put_as_is(world, job)]
    assert await hand.work_off() == ["once"]
    outcomes += [await _put_as_is(world, job)]

    assert [put.job_id for put in outcomes] == [job.id] * 3
    assert await world.rows("SELECT id FROM jobs") == []
    assert len(await world.rows("SELECT id FROM finished_jobs")) == 1


@pytest.mark.req("GRAPH-07")
async def test_the_same_id_put_again_finds_its_job_though_its_pool_is_draining_now(world: World) -> None:
    job = _job(world, new("once"))
    await _put_as_is(world, job)
    await world.queue.pools.drain(WIDE)

    put = await _put_as_is(world, job)

    assert (put.job_id, put.outcome) == (job.id, PutOutcome.CREATED)


def _job(world: World, asked: Any) -> Entry:
    now = world.clock.now()
    return Entry(JobId(world.dice.new_id("job")), asked, asked.payload, now, position=int(now))


async def _put_as_is(world: World, job: Entry) -> Any:
    (put,) = await world.queue.storage.transact(lambda tx: tx.jobs.put([job]))
    return put


# What is refused leaves no trace.


def _deep(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


BAD_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("kind", {"kind": ""}),
    ("kind", {"kind": "Upper"}),
    ("kind", {"kind": "x" * 65}),
    ("kind", {"kind": "a\nb"}),
    ("key", {"key": ""}),
    ("key", {"key": "x" * 256}),
    ("key", {"key": "a\0b"}),
    ("key", {"key": "\ud800"}),
    ("lane", {"lane": ""}),
    ("lane", {"lane": "a\x1bb"}),
    ("pool", {"pool": ""}),
    ("pool", {"pool": "../etc"}),
    ("resources", {"resources": ["UPPER"]}),
    ("resources", {"resources": [f"r{n}" for n in range(9)]}),
    ("priority", {"priority": 32_768}),
    ("priority", {"priority": 1.5}),
    ("priority", {"priority": True}),
    ("priority", {"priority": 10**5_000}),
    ("run_at", {"run_at": -1}),
    ("run_at", {"run_at": 2**63}),
    ("timeout_ms", {"timeout_ms": 0}),
    ("timeout_ms", {"timeout_ms": 2**40}),
    ("params", {"params": [1]}),
    ("params", {"params": {"a": float("nan")}}),
    ("params", {"params": {"a": float("inf")}}),
    ("params", {"params": {"a": "\0"}}),
    ("params", {"params": {"\0": 1}}),
    ("params", {"params": {"a": "\udfff"}}),
    ("params", {"params": {"a": 2**63}}),
    ("params", {"params": {"a": 10**5_000}}),
    ("params", {"params": {1: "a"}}),
    ("params", {"params": {"a": {1, 2}}}),
    ("params", {"params": {"a": b"bytes"}}),
    ("params", {"params": _deep(10_000)}),
    ("params", {"params": {"a": "x" * 1_048_577}}),
]


@pytest.mark.req("GRAPH-07", error=True)
@pytest.mark.req("INV-004", error=True)
async def test_bad_input_is_refused_by_the_name_of_its_field_and_changes_nothing(world: World) -> None:
    await world.put("standing", key="k")
    before = await world.snapshot()

    for field, bad in BAD_FIELDS:
        with pytest.raises(InvalidInput) as refused:
            await world.puts(**{"kind": "work", "key": "k", **bad})
        assert refused.value.field.startswith(field), bad
        assert len(str(refused.value)) < 300

    assert await world.snapshot() == before


@pytest.mark.req("DEC-007", error=True)
@pytest.mark.parametrize(
    "policy",
    [
        lambda: RetryPolicy(max_attempts=0),
        lambda: RetryPolicy(max_attempts=1_001),
        lambda: RetryPolicy(backoff_ms=-1),
        lambda: RetryPolicy(backoff_cap_ms=2**40),
    ],
)
def test_a_retry_policy_without_sense_is_refused(policy: Callable[[], RetryPolicy]) -> None:
    with pytest.raises(InvalidInput):
        policy()


async def test_what_lies_just_within_the_bounds_is_kept(world: World) -> None:
    params = {"a": "x" * (1_048_576 - len('{"a":""}')), "low": 0}
    del params["low"]

    job_id = await world.put(
        "x" * 64, key="k" * 255, lane="é" * 255, priority=32_767, params=params, timeout_ms=30 * 86_400_000
    )
    least = await world.put(priority=-32_767, params={"a": -(2**63)}, run_at=Instant(0))

    assert value_of((await world.live(job_id)).payload) == params
    assert (await world.live(least)).state == "ready"
    assert await world.kinds() == ["x" * 64, "work"]


@pytest.mark.req("DEC-011", error=True)
async def test_a_job_for_an_unknown_pool_is_refused(world: World) -> None:
    with pytest.raises(UnknownPool, match="nowhere") as refused:
        await world.put(pool="nowhere")

    assert refused.value.name == PoolName("nowhere")
    assert await world.rows("SELECT id FROM jobs") == []
