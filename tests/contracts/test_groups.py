"""Groups: members together or in order, one end for all, through retries, cancels, dead workers and pruning."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from duly.domain.errors import Conflict, InvalidInput
from duly.domain.groups import (
    Group,
    GroupAlreadyEnded,
    GroupMode,
    GroupRunning,
    GroupStatus,
    Member,
    MemberState,
    NewGroup,
    NewMember,
    UnknownGroup,
)
from duly.domain.ids import PoolName
from duly.domain.jobs import COMPLETED, Ending, FinishedJob, Job, JobStatus, UnknownJob
from duly.domain.payloads import json_of, value_of
from duly.domain.pools import PoolDraining, PoolInUse, UnknownPool
from duly.domain.retries import NO_RETRY, RetryPolicy
from duly.domain.templates import NewTemplate
from tests.contracts.world import FAILED, WIDE, Hand, World, new

TWICE = RetryPolicy(max_attempts=2, backoff_ms=0)
SKIPPED = Ending(status=JobStatus.SKIPPED, error="nothing to do")


def members(*kinds: str, **rest: Any) -> list[NewMember]:
    return [NewMember(job=new(kind, **{"retry": NO_RETRY, **rest}), name=kind) for kind in kinds]


async def parallel(world: World, *kinds: str, **rest: Any) -> Group:
    return await world.queue.groups.create(NewGroup(members=members(*kinds, **rest)), owner="ann")


async def sequence(world: World, asked: Sequence[NewMember], **rest: Any) -> Group:
    group = NewGroup(members=asked, mode=GroupMode.SEQUENTIAL, **rest)
    return await world.queue.groups.create(group, owner="ann")


async def status(world: World, group: Group) -> str:
    return (await world.queue.groups.get(group.id, owner="ann")).status.value


async def told(world: World, group: Group) -> list[Member]:
    return list(await world.queue.groups.members(group.id, owner="ann", most=1_000))


async def states(world: World, group: Group) -> list[str]:
    return [member.state.value for member in await told(world, group)]


def with_result(value: Any) -> Ending:
    return Ending(status=JobStatus.COMPLETED, result=json_of(value, field="result"))


async def end_next(hand: Hand, ending: Ending = COMPLETED) -> str:
    (job,) = await hand.claim()
    await hand.finish(job, ending=ending)
    return job.kind


# Parallel.


@pytest.mark.req("INV-006")
async def test_a_parallel_group_puts_all_and_ends_when_the_last_has_ended(world: World) -> None:
    group = await parallel(world, "a", "b", "c")
    hand = await world.hand()
    assert await world.kinds() == ["a", "b", "c"]
    a, b, c = await hand.claim(3)

    await hand.finish(b, c)
    assert await status(world, group) == "RUNNING"
    progress = await world.queue.groups.progress(group.id, owner="ann")
    assert (progress[MemberState.COMPLETED], progress[MemberState.LIVE], progress.ended, progress.size) == (2, 1, 2, 3)
    await hand.finish(a)

    ended = await world.queue.groups.get(group.id, owner="ann")
    assert (ended.status, ended.ended_at, ended.open) == (GroupStatus.COMPLETED, world.clock.now(), 0)


@pytest.mark.req("INV-006")
@pytest.mark.parametrize(
    ("endings", "expected"),
    [
        ((COMPLETED, COMPLETED), "COMPLETED"),
        ((COMPLETED, SKIPPED), "COMPLETED"),
        ((COMPLETED, FAILED), "PARTIAL"),
        ((FAILED, FAILED), "PARTIAL"),
        ((FAILED, Ending(status=JobStatus.CANCELLED)), "PARTIAL"),
        ((Ending(status=JobStatus.CANCELLED),) * 2, "CANCELLED"),
    ],
)
async def test_a_groups_status_follows_from_its_members(
    world: World, endings: tuple[Ending, Ending], expected: str
) -> None:
    group = await parallel(world, "a", "b")
    hand = await world.hand()

    await end_next(hand, endings[0])
    assert await status(world, group) == "RUNNING"
    await end_next(hand, endings[1])

    assert await status(world, group) == expected
    assert await states(world, group) == [ending.status.value for ending in endings]


@pytest.mark.req("INV-006")
async def test_a_members_retries_count_as_the_member(world: World) -> None:
    group = await parallel(world, "a", retry=TWICE)
    hand = await world.hand()

    await end_next(hand, FAILED)
    assert (await status(world, group), await states(world, group)) == ("RUNNING", ["live"])
    await end_next(hand)

    assert await status(world, group) == "COMPLETED"
    (member,) = await told(world, group)
    chain = await world.queue.jobs.chain(member.job_id)
    assert member.last_job == chain[-1].id


@pytest.mark.req("INV-006", error=True)
async def test_the_database_itself_ends_no_group_with_open_members(world: World) -> None:
    group = await parallel(world, "a")

    with pytest.raises(Exception, match="group_ends_with_its_members"):
        await world.rows(f"UPDATE job_groups SET status = 'COMPLETED', ended_at = 1 WHERE id = '{group.id}'")

    assert await status(world, group) == "RUNNING"


@pytest.mark.req("INV-006")
async def test_members_that_end_at_once_by_many_hands_end_their_group_once(world: World) -> None:
    group = await parallel(world, *(f"n{n}" for n in range(24)))
    queues = [await world.another() for _ in range(3)]
    hands = [await world.hand(queue=queue) for queue in queues]
    claimed = [await hand.claim(8) for hand in hands]

    async def finish(hand: Hand, jobs: Sequence[Any]) -> None:
        for job in jobs:
            await hand.finish(job)

    await asyncio.gather(*map(finish, hands, claimed))

    assert await status(world, group) == "COMPLETED"


# Sequential.


@pytest.mark.req("DEC-012")
async def test_a_sequential_group_puts_each_member_when_the_one_before_has_ended_well(world: World) -> None:
    group = await sequence(world, members("a", "b", "c"))
    hand = await world.hand()

    assert await world.kinds() == ["a"]
    await end_next(hand)
    assert await world.kinds() == ["b"]
    await end_next(hand, SKIPPED)
    assert await hand.work_off() == ["c"]

    assert await status(world, group) == "COMPLETED"
    assert await states(world, group) == ["COMPLETED", "SKIPPED", "COMPLETED"]


@pytest.mark.req("DEC-012")
async def test_after_a_member_failed_for_good_the_rest_are_cancelled(world: World) -> None:
    asked = [*members("a"), *members("b", retry=TWICE), *members("c", "d")]
    group = await sequence(world, asked)
    hand = await world.hand()
    await end_next(hand)

    await end_next(hand, FAILED)
    assert await states(world, group) == ["COMPLETED", "live", "pending", "pending"]
    await end_next(hand, FAILED)

    assert await status(world, group) == "PARTIAL"
    assert [(member.state, member.reason) for member in await told(world, group)] == [
        ("COMPLETED", None),
        ("FAILED", "as asked"),
        ("CANCELLED", "predecessor failed"),
        ("CANCELLED", "predecessor failed"),
    ]
    assert await world.rows("SELECT id FROM jobs") == []


@pytest.mark.req("DEC-012")
async def test_a_group_told_not_to_stop_goes_on(world: World) -> None:
    group = await sequence(world, members("a", "b"), stop_on_failure=False)
    hand = await world.hand()

    await end_next(hand, FAILED)
    await end_next(hand)

    assert await states(world, group) == ["FAILED", "COMPLETED"]
    assert await status(world, group) == "PARTIAL"


@pytest.mark.req("DEC-012")
async def test_a_dead_worker_does_not_stop_a_sequence_that_may_be_tried_again(world: World) -> None:
    group = await sequence(world, [*members("a", retry=TWICE), *members("b")])
    lost = await world.hand()
    await lost.claim()

    world.clock.advance(31)
    await world.queue.sessions.rescue_expired()
    assert await states(world, group) == ["live", "pending"]
    hand = await world.hand()
    assert await hand.work_off() == ["a", "b"]

    assert await status(world, group) == "COMPLETED"


@pytest.mark.req("DEC-012")
async def test_a_dead_worker_ends_a_sequence_that_may_not(world: World) -> None:
    group = await sequence(world, members("a", "b"))
    lost = await world.hand()
    await lost.claim()

    world.clock.advance(31)
    await world.queue.sessions.rescue_expired()

    assert await states(world, group) == ["FAILED", "CANCELLED"]
    assert await status(world, group) == "PARTIAL"


@pytest.mark.req("DEC-012")
@pytest.mark.parametrize("how", ["queued", "running", "held", "revoked"])
async def test_a_member_that_is_cancelled_stops_the_sequence(world: World, how: str) -> None:
    group = await sequence(world, members("a", "b"))
    hand = await world.hand()
    first = (await told(world, group))[0].job_id
    claimed = [] if how == "queued" else await (hand.hold() if how == "held" else hand.claim())

    await world.queue.jobs.cancel(first, reason="not needed", owner="ann")
    if how == "running":
        await hand.fail(*claimed)
    elif how == "held":
        await world.queue.sessions.give_back(hand.session, claimed)
    elif how == "revoked":
        await world.queue.sessions.revoke(first, reason="not needed")

    assert [(member.state, member.reason) for member in await told(world, group)] == [
        ("CANCELLED", "not needed"),
        ("CANCELLED", "predecessor cancelled"),
    ]
    assert await status(world, group) == "CANCELLED"


async def test_members_of_one_lane_keep_its_order(world: World) -> None:
    group = await sequence(world, members("a", "b", lane="lane"))
    hand = await world.hand()
    (first,) = await hand.claim()
    await world.put("between", lane="lane")
    world.clock.advance(1)

    await hand.finish(first)

    assert await hand.work_off() == ["between", "b"]
    assert await status(world, group) == "COMPLETED"


# References.


async def test_a_member_gets_what_a_member_before_it_left(world: World) -> None:
    asked = [
        *members("fetch"),
        *members("count"),
        NewMember(
            job=new(
                "report",
                params={
                    "rows": {"from": "fetch", "path": "result.rows"},
                    "first": [{"from": 0, "path": "result.rows.0.id"}],
                    "whole": {"from": 1, "path": "result"},
                    "plain": {"from": "x"},
                },
            )
        ),
    ]
    group = await sequence(world, asked)
    hand = await world.hand()
    await end_next(hand, with_result({"rows": [{"id": 7}, {"id": 8}]}))
    await end_next(hand, with_result(2))

    (report,) = await hand.claim()

    assert value_of(report.payload) == {
        "rows": [{"id": 7}, {"id": 8}],
        "first": [7],
        "whole": 2,
        "plain": {"from": "x"},
    }
    await hand.finish(report)
    assert await status(world, group) == "COMPLETED"


async def test_a_member_gets_the_artifacts_of_a_member_before_it(world: World) -> None:
    from duly.domain.logs import Artifact

    params = {"file": {"from": 0, "path": "artifacts.0.name"}}
    await sequence(world, [*members("make"), NewMember(job=new("mail", params=params))])
    hand = await world.hand()
    (made,) = await hand.claim()
    artifact = Artifact(job_id=made.id, name="a.pdf", size=3, sha256="0" * 64)
    await world.transact(lambda tx: tx.logs.add([], [], [artifact]))
    await hand.finish(made)

    (mail,) = await hand.claim()

    assert value_of(mail.payload) == {"file": "a.pdf"}


@pytest.mark.req("DEC-012", error=True)
@pytest.mark.parametrize(
    ("left", "said"),
    [
        (COMPLETED, "without a result"),
        (with_result({"y": 1}), "there is no 'x'"),
        (with_result([1]), "there is no 'x'"),
        (with_result({"x": "long"}), "asks for integer"),
    ],
)
async def test_a_reference_that_leads_nowhere_fails_its_member_for_good(world: World, left: Ending, said: str) -> None:
    schema = {"properties": {"n": {"type": "integer"}}}
    template = NewTemplate(name="count", kind="count", schema=schema, pool=WIDE)
    await world.queue.templates.create(template, owner="ann")
    params = {"n": {"from": 0, "path": "result.x"}}
    asked = [*members("a"), NewMember(template="count", params=params), *members("c")]
    group = await sequence(world, asked)
    hand = await world.hand()

    await end_next(hand, left)

    first, failed, rest = await told(world, group)
    assert (first.state, failed.state, rest.state) == ("COMPLETED", "FAILED", "CANCELLED")
    assert said in (failed.reason or "")
    assert rest.reason == "predecessor failed"
    assert await status(world, group) == "PARTIAL"
    assert await hand.claim() == []


async def test_what_leads_nowhere_is_passed_over_by_a_group_told_not_to_stop(world: World) -> None:
    broken = NewMember(job=new("b", params={"n": {"from": 0, "path": "result.x"}}))
    group = await sequence(world, [*members("a"), broken, *members("c")], stop_on_failure=False)
    hand = await world.hand()

    await end_next(hand, FAILED)
    assert await hand.work_off() == ["c"]

    assert await states(world, group) == ["FAILED", "FAILED", "COMPLETED"]


@pytest.mark.parametrize(
    "reference",
    [
        {"from": 1, "path": "result"},
        {"from": 2, "path": "result"},
        {"from": -1, "path": "result"},
        {"from": "nobody", "path": "result"},
        {"from": 0, "path": "error"},
        {"from": 0, "path": 1},
        {"from": True, "path": "result"},
        {"from": [0], "path": "result"},
    ],
)
async def test_a_reference_that_could_never_lead_anywhere_is_refused_at_once(world: World, reference: object) -> None:
    asked = [*members("a"), NewMember(job=new("b", params={"n": reference})), *members("c")]

    with pytest.raises(InvalidInput, match=r"members\[1\]\.params\.n"):
        await sequence(world, asked)

    assert await world.rows("SELECT id FROM job_groups UNION ALL SELECT id FROM jobs") == []


# Made from templates, in one transaction.


@pytest.mark.req("INV-005")
async def test_members_are_snapshots_of_their_templates(world: World) -> None:
    templates = world.queue.templates
    template = NewTemplate(name="mail", kind="mail", params={"n": 1}, pool=WIDE)
    await templates.create(template, owner="ann")
    group = await sequence(world, [*members("a"), NewMember(template="mail", params={"to": "you"})])
    await templates.update(NewTemplate(name="mail", kind="burn", pool=WIDE), owner="ann", version=1)
    await templates.delete("mail", owner="ann")
    hand = await world.hand()

    await end_next(hand)

    (mail,) = await hand.claim()
    assert (mail.kind, value_of(mail.payload)) == ("mail", {"n": 1, "to": "you"})
    origin = await world.queue.storage.read(lambda tx: tx.origins.get(mail.chain))
    assert origin is not None
    assert (origin.owner, origin.template, origin.template_version) == ("ann", "mail", 1)
    assert [job.id for job in await world.queue.jobs.list(owner="ann")] == [mail.id]
    await hand.finish(mail)
    assert await status(world, group) == "COMPLETED"


async def test_a_group_with_one_bad_member_is_not_made(world: World) -> None:
    groups = world.queue.groups
    await world.queue.templates.create(NewTemplate(name="strict", kind="x", schema={"required": ["n"]}), owner="ann")
    await world.pool("closing", 1)
    await world.queue.pools.drain(PoolName("closing"))
    bad: list[tuple[NewMember, type[Exception], str]] = [
        (NewMember(template="strict"), InvalidInput, r"members\[1\]\.params\.n"),
        (NewMember(job=new("x", pool="nowhere")), UnknownPool, "nowhere"),
        (NewMember(job=new("x", resources=["nowhere"])), UnknownPool, "nowhere"),
        (NewMember(job=new("x", pool="closing")), PoolDraining, "closing"),
    ]
    for member, error, said in bad:
        for mode in GroupMode:
            with pytest.raises(error, match=said):
                await groups.create(NewGroup(members=[*members("a"), member], mode=mode), owner="ann")

    assert await world.rows("SELECT id FROM job_groups UNION ALL SELECT id FROM jobs") == []
    assert await world.rows("SELECT id FROM group_members UNION ALL SELECT chain_id FROM job_origins") == []


async def test_a_group_made_again_under_its_id_is_found(world: World) -> None:
    asked = NewGroup(members=members("a", "b"))
    first = await world.queue.groups.create(asked, owner="ann", group_id="grp_mine")

    assert await world.queue.groups.create(asked, owner="ann", group_id="grp_mine") == first
    with pytest.raises(UnknownGroup):
        await world.queue.groups.create(asked, owner="bob", group_id="grp_mine")

    assert await world.kinds() == ["a", "b"]


async def test_an_owner_meets_only_its_own_groups(world: World) -> None:
    groups = world.queue.groups
    first, second = await parallel(world, "a"), await parallel(world, "b")
    other = await groups.create(NewGroup(members=members("c")), owner="bob")

    assert [group.id for group in await groups.list(owner="ann")] == [second.id, first.id]
    assert [group.id for group in await groups.list(owner="ann", before=second.id)] == [first.id]
    assert [group.id for group in await groups.list(owner=None)] == [other.id, second.id, first.id]
    assert await groups.list(owner="ann", status=GroupStatus.PARTIAL) == []
    for call in (groups.get, groups.members, groups.progress, groups.retry):
        with pytest.raises(UnknownGroup):
            await call(other.id, owner="ann")
    with pytest.raises(UnknownGroup):
        await groups.cancel(other.id, owner="ann", reason="not mine")
    (member,) = await groups.members(other.id, owner="bob")
    with pytest.raises(UnknownJob):
        await world.queue.jobs.find(member.job_id, owner="ann")


# Cancelling.


@pytest.mark.req("INV-006")
async def test_cancelling_a_group_ends_what_waits_and_asks_what_runs_to_stop(world: World) -> None:
    group = await parallel(world, "running", "queued", "done")
    hand = await world.hand()
    jobs = await hand.claim(1)
    queued, done = await hand.claim(2)
    await hand.finish(done)
    await world.queue.sessions.give_back(hand.session, [queued])

    asked = await world.queue.groups.cancel(group.id, owner="ann", reason="enough")

    assert (asked.status, asked.cancel_reason) == (GroupStatus.RUNNING, "enough")
    assert await states(world, group) == ["live", "CANCELLED", "COMPLETED"]
    assert (await world.queue.sessions.beat(hand.session)).cancelled == {jobs[0].id: "enough"}
    await hand.fail(*jobs)
    assert await status(world, group) == "CANCELLED"


async def test_what_does_not_stop_with_its_group_loses_its_claim(world: World) -> None:
    group = await parallel(world, "stubborn")
    hand = await world.hand()
    (job,) = await hand.claim()
    await world.queue.groups.cancel(group.id, owner="ann", reason="enough")

    world.clock.advance(29)
    await world.queue.sessions.beat(hand.session)
    await world.queue.timekeeping.revoke_due()
    assert await status(world, group) == "RUNNING"
    world.clock.advance(2)
    await world.queue.timekeeping.revoke_due()

    assert await status(world, group) == "CANCELLED"
    assert list((await hand.finish(job)).stale) == [job.id]


async def test_cancelling_a_sequence_puts_nothing_more(world: World) -> None:
    group = await sequence(world, members("a", "b", "c"))
    hand = await world.hand()
    (first,) = await hand.claim()

    await world.queue.groups.cancel(group.id, owner="ann", reason="enough")
    assert [(m.state, m.reason) for m in await told(world, group)][1:] == [("CANCELLED", "enough")] * 2
    await hand.finish(first)

    assert await states(world, group) == ["COMPLETED", "CANCELLED", "CANCELLED"]
    assert await status(world, group) == "CANCELLED"
    assert await hand.claim() == []


async def test_a_group_whose_members_all_completed_is_completed_though_it_was_cancelled(world: World) -> None:
    group = await parallel(world, "a")
    hand = await world.hand()
    jobs = await hand.claim()
    await world.queue.groups.cancel(group.id, owner="ann", reason="too late")

    await hand.finish(*jobs)

    assert await status(world, group) == "COMPLETED"


@pytest.mark.req("INV-006", error=True)
async def test_an_ended_group_cannot_be_cancelled(world: World) -> None:
    group = await parallel(world, "a")
    hand = await world.hand()
    await end_next(hand)

    with pytest.raises(GroupAlreadyEnded, match="COMPLETED"):
        await world.queue.groups.cancel(group.id, owner="ann", reason="too late")


async def test_a_cancel_and_a_report_at_once_leave_a_group_that_has_ended(world: World) -> None:
    other = await world.another()
    hand = await world.hand(queue=other)
    for _ in range(10):
        group = await sequence(world, members("a", "b", "c"))
        (first,) = await hand.claim()

        await asyncio.gather(hand.finish(first), world.queue.groups.cancel(group.id, owner="ann", reason="enough"))
        while claimed := await hand.claim():
            await hand.fail(*claimed)

        assert await status(world, group) == "CANCELLED"


# Trying again.


async def test_the_failed_part_of_a_parallel_group_is_tried_again(world: World) -> None:
    group = await parallel(world, "a", "b", "c")
    hand = await world.hand()
    await end_next(hand)
    await end_next(hand, FAILED)
    await end_next(hand, Ending(status=JobStatus.CANCELLED, error="stopped"))
    before = await told(world, group)

    again = await world.queue.groups.retry(group.id, owner="ann")

    assert (again.status, again.ended_at, again.open) == (GroupStatus.RUNNING, None, 2)
    assert await hand.work_off() == ["b", "c"]
    assert await status(world, group) == "COMPLETED"
    after = await told(world, group)
    assert after[0] == before[0]
    assert {member.job_id for member in after[1:]}.isdisjoint({member.job_id for member in before})
    old = await world.ended(before[1].job_id)
    assert old.status is JobStatus.FAILED


async def test_a_sequence_is_tried_again_from_where_it_stopped(world: World) -> None:
    params = {"n": {"from": 0, "path": "result"}}
    group = await sequence(world, [*members("a", "b"), NewMember(job=new("c", params=params))])
    hand = await world.hand()
    await end_next(hand, with_result(5))
    await end_next(hand, FAILED)

    await world.queue.groups.retry(group.id, owner="ann")

    assert await world.kinds() == ["b"]
    await end_next(hand)
    (last,) = await hand.claim()
    assert value_of(last.payload) == {"n": 5}
    await hand.finish(last)
    assert await status(world, group) == "COMPLETED"


async def test_a_cancelled_group_that_is_tried_again_runs_to_its_end(world: World) -> None:
    group = await sequence(world, members("a", "b"))
    await world.queue.groups.cancel(group.id, owner="ann", reason="enough")
    assert await status(world, group) == "CANCELLED"

    again = await world.queue.groups.retry(group.id, owner="ann")
    hand = await world.hand()

    assert again.cancel_reason is None
    assert await hand.work_off() == ["a", "b"]
    assert await status(world, group) == "COMPLETED"


async def test_a_chain_that_was_replaced_is_tried_again_by_itself(world: World) -> None:
    group = await parallel(world, "a")
    hand = await world.hand()
    await end_next(hand, FAILED)
    replaced = (await told(world, group))[0].job_id
    await world.queue.groups.retry(group.id, owner="ann")

    put = await world.queue.jobs.retry(replaced, owner="ann")
    assert (await world.live(put.job_id)).member is None
    await hand.fail(*[job for job in await hand.claim(2) if job.id == put.job_id])

    assert (await status(world, group), await states(world, group)) == ("RUNNING", ["live"])


async def test_only_an_ended_group_that_lacks_something_is_tried_again(world: World) -> None:
    group = await parallel(world, "a")
    hand = await world.hand()

    with pytest.raises(GroupRunning):
        await world.queue.groups.retry(group.id, owner="ann")
    await end_next(hand)
    with pytest.raises(GroupAlreadyEnded):
        await world.queue.groups.retry(group.id, owner="ann")


async def test_one_member_is_tried_again_as_any_other_job(world: World) -> None:
    group = await parallel(world, "a", "b")
    hand = await world.hand()
    await end_next(hand, FAILED)
    first = (await told(world, group))[0].job_id

    put = await world.queue.jobs.retry(first, owner="ann")
    assert await states(world, group) == ["live", "live"]
    assert await hand.work_off() == ["b", "a"]

    assert await status(world, group) == "COMPLETED"
    assert (await told(world, group))[0].last_job == put.job_id


@pytest.mark.req("DEC-012")
async def test_a_member_tried_again_takes_those_after_it_along(world: World) -> None:
    group = await sequence(world, members("a", "b", "c"))
    hand = await world.hand()
    await end_next(hand)
    await end_next(hand, FAILED)
    failed = (await told(world, group))[1].job_id

    await world.queue.jobs.retry(failed)

    assert (await status(world, group), await states(world, group)) == ("RUNNING", ["COMPLETED", "live", "pending"])
    assert await hand.work_off() == ["b", "c"]
    assert await status(world, group) == "COMPLETED"


@pytest.mark.req("DEC-012", error=True)
async def test_nothing_of_a_running_sequence_is_tried_again_beside_it(world: World) -> None:
    group = await sequence(world, members("a", "b"), stop_on_failure=False)
    hand = await world.hand()
    await end_next(hand, FAILED)
    first = (await told(world, group))[0].job_id

    with pytest.raises(GroupRunning):
        await world.queue.jobs.retry(first)

    assert await states(world, group) == ["FAILED", "live"]


# Pools and pruning.


async def test_a_draining_pool_runs_the_members_of_groups_it_has_accepted(world: World) -> None:
    group = await sequence(world, members("a", "b"))
    hand = await world.hand()
    await world.queue.pools.drain(WIDE)

    assert await hand.work_off() == ["a", "b"]

    assert await status(world, group) == "COMPLETED"
    with pytest.raises(PoolDraining):
        await parallel(world, "c")


async def test_a_pool_whose_turn_in_a_group_is_to_come_cannot_be_removed(world: World) -> None:
    await world.pool("later", 1)
    await world.pool("extra", 1)
    later = NewMember(job=new("b", pool="later", resources=["extra"]))
    group = await sequence(world, [*members("a"), later])

    for name in ("later", "extra"):
        with pytest.raises(PoolInUse):
            await world.queue.pools.remove(PoolName(name))
    await world.queue.groups.cancel(group.id, owner="ann", reason="enough")

    for name in ("later", "extra"):
        await world.queue.pools.remove(PoolName(name))


@pytest.mark.req("INV-006")
async def test_ended_members_of_a_running_group_are_not_pruned(world: World) -> None:
    params = {"n": {"from": 0, "path": "result"}}
    group = await sequence(world, [*members("a", "b"), NewMember(job=new("c", params=params))])
    hand = await world.hand()
    await end_next(hand, with_result(5))
    world.clock.advance(1_000)
    await world.queue.sessions.rescue_expired()

    assert await world.queue.jobs.prune(before=world.clock.now()) == 0
    assert await world.queue.groups.prune(before=world.clock.now()) == 0
    hand = await world.hand()
    await end_next(hand)
    (last,) = await hand.claim()
    assert value_of(last.payload) == {"n": 5}
    await hand.finish(last)
    world.clock.advance(1_000)

    assert await world.queue.jobs.prune(before=world.clock.now()) == 3
    assert await world.queue.groups.prune(before=world.clock.now()) == 1
    assert await world.rows("SELECT id FROM group_members UNION ALL SELECT chain_id FROM job_origins") == []
    with pytest.raises(UnknownGroup):
        await world.queue.groups.get(group.id, owner="ann")


async def test_a_members_job_is_live_then_ended_and_names_its_member(world: World) -> None:
    group = await parallel(world, "a")
    (member,) = await told(world, group)
    job = await world.queue.jobs.find(member.job_id, owner="ann")
    assert isinstance(job, Job)
    assert job.member == member.id
    hand = await world.hand()

    await end_next(hand)

    ended = await world.queue.jobs.find(member.job_id, owner="ann")
    assert isinstance(ended, FinishedJob)


async def test_a_member_tried_again_leaves_those_that_were_cancelled_by_themselves(world: World) -> None:
    group = await sequence(world, members("a", "b", "c"))
    hand = await world.hand()
    await end_next(hand)
    first, second, _ = await told(world, group)
    await world.queue.jobs.cancel(second.job_id, reason="not this one")

    await world.queue.jobs.retry(first.job_id)
    assert await states(world, group) == ["live", "CANCELLED", "pending"]
    assert await hand.work_off() == ["a", "c"]

    assert await states(world, group) == ["COMPLETED", "CANCELLED", "COMPLETED"]
    assert await status(world, group) == "PARTIAL"


@pytest.mark.req("INV-006")
async def test_whatever_meets_at_once_every_group_ends_as_its_members_did(world: World) -> None:
    """Three hands, one who cancels and one who tries again, all at the same time; the laws are checked afterwards."""
    groups = [
        await (sequence if n % 2 else _together)(world, members(f"a{n}", f"b{n}", f"c{n}", lane=f"lane {n % 3}"))
        for n in range(8)
    ]
    queues = [await world.another() for _ in range(4)]

    async def work(hand: Hand, ending: Ending) -> None:
        for _ in range(12):
            await hand.finish(*await hand.claim(2), ending=ending)

    async def meddle(queue: Any) -> None:
        for group in groups * 2:
            with suppress(Conflict):
                await queue.groups.cancel(group.id, owner=None, reason="enough")
            with suppress(Conflict):
                await queue.groups.retry(group.id, owner=None)

    hands = [await world.hand(queue=queue) for queue in queues[:3]]
    await asyncio.gather(*map(work, hands, (COMPLETED, FAILED, COMPLETED)), meddle(queues[3]))
    while claimed := await hands[0].claim(10):
        await hands[0].finish(*claimed)

    assert {await status(world, group) for group in groups} <= {"COMPLETED", "PARTIAL", "CANCELLED"}


async def _together(world: World, asked: Sequence[NewMember]) -> Group:
    return await world.queue.groups.create(NewGroup(members=asked), owner="ann")
