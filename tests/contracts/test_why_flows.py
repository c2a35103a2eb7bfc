"""Why groups and runs of workflows are as they are, from what a real store has recorded."""

import asyncio

import pytest

from duly.domain.executions import GRAPH_RUN, UnknownExecution
from duly.domain.explanations import Explained, Explanation, NothingKnown
from duly.domain.groups import Group, GroupMode, NewGroup, NewMember, UnknownGroup
from duly.domain.ids import GroupId, JobKey
from duly.domain.instants import written
from duly.domain.jobs import UnknownJob
from duly.domain.retries import RetryPolicy
from tests.contracts.graphs import PatientClock
from tests.contracts.test_reviews import asks, waiting
from tests.contracts.test_workflows import ONCE, _dies, _known, _taken_over, home, node
from tests.contracts.world import WIDE, World, new

NO_RETRY = RetryPolicy(max_attempts=1)


@pytest.fixture
def world(store: str, place: str) -> World:
    world = World(store, place)
    world.clock = PatientClock()
    return world


async def sequence(world: World, *kinds: str) -> Group:
    members = [NewMember(job=new(kind, retry=NO_RETRY), name=kind) for kind in kinds]
    return await world.queue.groups.create(
        NewGroup(members=members, mode=GroupMode.SEQUENTIAL, name="night"), owner="ann"
    )


async def why_group(world: World, group: Group) -> Explained:
    return await world.queue.why.group(group.id, owner="ann")


def told(explained: Explained | Explanation, name: str) -> list[str]:
    assert isinstance(explained, Explained)
    return [fact.sentence for fact in explained.facts if fact.name == name]


# Groups


@pytest.mark.req("OWN-02")
async def test_a_group_says_how_far_it_is_and_who_holds_it_up(world: World) -> None:
    group = await sequence(world, "fetch", "read", "mail")
    hand = await world.hand()
    await hand.finish(*await hand.claim())
    await hand.claim()
    at, (_, read, _) = written(world.clock.now()), await world.queue.groups.members(group.id, owner=None)

    explained = await why_group(world, group)

    assert explained.answer == "running"
    assert explained.sentences == [
        (
            f"{group.id} is a group 'night' of 3 members, one after the other, up to the first that fails, "
            f"made by ann at {at}."
        ),
        "It is RUNNING: 1 completed, 1 live and 1 not put yet.",
        f"Member 2 (read) is running since {at} as {read.job_id}, attempt 1 of 1.",
        "Member 3 (mail) waits for the end of member 2 (read).",
    ]


@pytest.mark.req("OWN-02")
async def test_a_partial_group_says_who_failed_and_what_that_cost_the_others(world: World) -> None:
    group = await sequence(world, "fetch", "read", "mail")
    hand = await world.hand()
    await hand.fail(*await hand.claim())
    at = written(world.clock.now())

    explained = await why_group(world, group)

    assert explained.answer == "partial"
    assert explained.sentences[1:] == [
        f"It ended PARTIAL at {at}: 1 failed and 2 cancelled.",
        f"Member 1 (fetch) failed at {at} after 1 attempt: as asked.",
        "Members 2 and 3 were cancelled: predecessor failed.",
        f"Try the members again that failed or were cancelled with `duly group retry {group.id}`.",
    ]


@pytest.mark.req("OWN-02")
async def test_the_job_of_a_member_that_is_not_put_says_so_and_why(world: World) -> None:
    group = await sequence(world, "fetch", "read")
    _, second = await world.queue.groups.members(group.id, owner="ann")
    before = await world.queue.why.job(second.job_id, owner="ann")
    found = await world.queue.why.of(second.job_id)
    hand = await world.hand()
    await hand.fail(*await hand.claim())
    after = await world.queue.why.job(second.job_id, owner="ann")

    who = f"{second.job_id} is the job of member 2 of 2 of the sequential group 'night' {group.id}, which is"
    assert (before.answer, told(before, "of_group")) == ("waiting", [f"{who} RUNNING."])
    assert told(before, "not_put") == ["It is not put yet: it waits for the end of those before it."]
    assert found == before
    at = written(world.clock.now())
    assert (after.answer, told(after, "of_group")) == ("cancelled", [f"{who} PARTIAL."])
    assert told(after, "never_put") == [f"It was never put, and was cancelled at {at}: predecessor failed."]
    with pytest.raises(UnknownJob):
        await world.queue.why.job(second.job_id, owner="bob")


@pytest.mark.req("OWN-02")
async def test_a_cancelled_group_says_by_whom(world: World) -> None:
    group = await sequence(world, "fetch", "read")
    await world.queue.groups.cancel(group.id, owner="ann", reason="cancelled by ann")

    explained = await why_group(world, group)

    assert told(explained, "cancelled") == ["It was cancelled: cancelled by ann."]
    assert explained.answer == "cancelled"


@pytest.mark.req("OWN-02", error=True)
async def test_somebody_elses_group_or_run_does_not_exist(world: World) -> None:
    group = await sequence(world, "fetch")

    with pytest.raises(UnknownGroup):
        await world.queue.why.group(group.id, owner="bob")
    with pytest.raises(UnknownGroup):
        await world.queue.why.group(GroupId("grp_99"))
    with pytest.raises(UnknownExecution):
        await world.queue.why.workflow_run("exe_99")


# Runs of workflows


@pytest.mark.req("OWN-02")
async def test_a_run_of_a_workflow_says_what_runs_and_what_waits_for_what(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"), concurrency=1)
    shop.shop.holds("b")
    running = asyncio.create_task(shop.executions.execute(shop.asks()))
    await shop.shop.entered["b"].wait()
    execution = await _known(world)

    explained = await world.queue.why.of(execution.run_id, owner="ann")
    shop.shop.gates["b"].set()
    await running

    at = written(world.clock.now())
    assert explained.answer == "running"
    assert explained.sentences[:6] == [
        f"{execution.run_id} is a run of version 1 of the workflow 'news', begun at {at}.",
        "Of its 4 nodes: 1 running, 1 success and 2 not begun.",
        f"Node 'a' succeeded at {at} after 1 try.",
        f"Node 'b' is at try 1 of 3, begun at {at}.",
        "Node 'c' is ready, but 1 of at most 1 run already.",
        "Node 'd' waits for 'b' and 'c'.",
    ]
    ended = await world.queue.why.workflow_run(execution.run_id, owner="ann")
    assert (ended.answer, told(ended, "next")) == ("ran", [])
    assert "It acts under" in told(ended, "spending")[0]


@pytest.mark.req("OWN-02")
async def test_a_run_that_was_taken_over_says_what_was_not_run_again(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a"), node("b", "a", retries=ONCE))
    shop.shop.holds("b")
    dead = asyncio.create_task(shop.executions.execute(shop.asks()))
    await shop.shop.entered["b"].wait()
    await _dies(shop.executions, dead)
    began = written(world.clock.now())
    execution = await _taken_over(world, shop.service(await world.another()), shop.asks())

    explained = await world.queue.why.workflow_run(execution.run_id, workflow="news")

    assert explained.answer == "failed"
    assert told(explained, "node_reused") == [
        f"Node 'a' succeeded at {began} after 1 try, before attempt 2 began, and was not run again."
    ]
    assert told(explained, "node_failed") == [
        (
            f"Node 'b' failed at {written(world.clock.now())} after 1 try (node_lost): "
            "the process that ran try 1 of it died."
        )
    ]
    assert explained.sentences[-1] == "Run the workflow again with `duly workflow run news`."


@pytest.mark.req("OWN-02", error=True)
async def test_a_run_of_another_workflow_is_not_found_under_this_one(world: World) -> None:
    shop = await home(world)
    await shop.deploy(node("a"))
    execution = await shop.executions.execute(shop.asks())

    with pytest.raises(UnknownExecution):
        await world.queue.why.workflow_run(execution.run_id, workflow="olds")
    with pytest.raises(UnknownExecution):
        await world.queue.why.workflow_run(execution.run_id, owner="bob")


# Graphs


@pytest.mark.req("OWN-02")
async def test_a_job_that_waits_for_a_review_says_until_when_and_what_it_has_spent(world: World) -> None:
    home_, execution, (review,) = await waiting(world, asks, key="job-key")
    params = {"graph_id": execution.graph_id, "grant_id": home_.grant_id, "input": {}}
    job = await world.put(GRAPH_RUN, key=JobKey("job-key"), pool=WIDE, params=params)
    hand = await world.hand()
    (claimed,) = await hand.claim()
    await world.queue.sessions.suspend(hand.session, claimed, execution.run_id)

    explained = await world.queue.why.job(job)

    assert told(explained, "waits_for_review") == [review.waiting_in_words]
    assert explained.sentences[-1] == f"Decide it with `duly review approve {review.id}`, or reject it."
    assert f"Its execution is {execution.run_id}" in told(explained, "spending")[1]
    of_execution = await world.queue.why.of(execution.run_id)
    assert (of_execution.answer, told(of_execution, "waits_for_review")) == ("waiting", [review.waiting_in_words])
    assert await world.queue.why.of(review.id) == of_execution


@pytest.mark.req("OWN-02", error=True)
async def test_a_key_in_ones_params_does_not_show_what_another_has_executed(world: World) -> None:
    _, _, (review,) = await waiting(world, asks, key="job-key")
    with pytest.raises(NothingKnown):
        await world.queue.why.of(review.id, owner="eve")
    group = await world.queue.groups.create(
        NewGroup(members=[NewMember(job=new(GRAPH_RUN, params={"key": "job-key"}))]), owner="eve"
    )
    (member,) = await world.queue.groups.members(group.id, owner="eve")

    explained = await world.queue.why.job(member.job_id, owner="eve")

    assert told(explained, "spending") == []
