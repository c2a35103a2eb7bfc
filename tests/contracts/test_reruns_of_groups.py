"""A transaction whose answer was lost is run once more: what it did is found, not done again."""

import pytest

from duly.domain.groups import GroupMode, GroupStatus, NewGroup, NewMember
from duly.domain.jobs import PutOutcome
from duly.domain.retries import NO_RETRY
from duly.domain.templates import NewTemplate, UnknownTemplate
from tests.contracts.forgetful import forgetful
from tests.contracts.world import WIDE, World, new

TEMPLATE = NewTemplate(name="mail", kind="mail", pool=WIDE, retry=NO_RETRY, schema={"type": "object"})


async def test_templates_and_their_jobs(world: World) -> None:
    queue = forgetful(world)

    made = await queue.templates.create(TEMPLATE, owner="ann")
    world.clock.advance(1)
    changed = await queue.templates.update(TEMPLATE, owner="ann", version=1)
    put = await queue.jobs.put_from("mail", {"n": 1}, owner="ann")
    await queue.jobs.edit_params(put.job_id, {"n": 2})

    assert (made.version, changed.version, put.outcome) == (1, 2, PutOutcome.CREATED)
    assert (await world.queue.templates.get("mail", owner="ann")).version == 2
    assert await world.kinds() == ["mail"]
    await queue.templates.delete("mail", owner="ann")
    with pytest.raises(UnknownTemplate):
        await queue.templates.delete("mail", owner="ann")


async def test_retries_by_hand(world: World) -> None:
    queue, hand = forgetful(world), await world.hand()
    job_id = await world.put(retry=NO_RETRY)
    await hand.fail(*await hand.claim())

    put = await queue.jobs.retry(job_id)

    assert [job.id for job in await world.queue.jobs.chain(job_id)] == [job_id, put.job_id]


@pytest.mark.parametrize("mode", list(GroupMode))
async def test_groups(world: World, mode: GroupMode) -> None:
    queue, hand = forgetful(world), await world.hand()
    members = [NewMember(job=new(kind, retry=NO_RETRY)) for kind in ("a", "b")]

    group = await queue.groups.create(NewGroup(members=members, mode=mode), owner="ann")
    assert (await queue.groups.cancel(group.id, owner="ann", reason="enough")).status is GroupStatus.CANCELLED
    assert (await queue.groups.retry(group.id, owner="ann")).status is GroupStatus.RUNNING

    assert await hand.work_off() == ["a", "b"]
    assert (await world.queue.groups.get(group.id, owner="ann")).status is GroupStatus.COMPLETED
    assert await world.rows("SELECT count(*) FROM job_groups") == [(1,)]
