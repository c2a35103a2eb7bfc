"""Schedules that run templates: a snapshot when the slot fires, or a run that says why there is none."""

from typing import Any

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import Lane, PoolName
from duly.domain.policies import Overlap
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import Target
from duly.domain.templates import NewTemplate
from tests.contracts.keeping import MINUTELY, Keeping
from tests.contracts.world import WIDE, World

SCHEMA = {"properties": {"to": {"type": "string"}}, "required": ["to"]}
LETTERS = NewTemplate(
    name="letters",
    kind="send",
    params={"copies": 2},
    schema=SCHEMA,
    pool=WIDE,
    lane=Lane("post"),
    priority=3,
    retry=RetryPolicy(max_attempts=4, backoff_ms=7, backoff_cap_ms=8),
    timeout_ms=900,
)
TARGET = Target(kind="template:letters", params={"to": "bob"})


async def _lettering(world: World, **policies: Any) -> Keeping:
    keeping = Keeping(world)
    await world.queue.templates.create(LETTERS, owner="ann")
    await keeping.schedule(target=TARGET, **policies)
    return keeping


@pytest.mark.req("INV-005")
async def test_each_slot_runs_the_template_as_it_is_when_it_fires(world: World) -> None:
    keeping = await _lettering(world, overlap=Overlap.QUEUE)

    await keeping.at(1)
    changed = NewTemplate(name="letters", kind="shout", params={"copies": 5}, pool=WIDE)
    await world.queue.templates.update(changed, owner="ann", version=1)
    await keeping.at(2)

    first, second = await keeping.runs()
    assert first.job_id is not None
    assert second.job_id is not None
    job = await world.live(first.job_id)
    assert (job.kind, job.payload, job.pool, job.priority) == ("send", '{"copies":2,"to":"bob"}', WIDE, 3)
    assert (job.retry, job.timeout_ms, job.lane, job.ledger_run) == (LETTERS.retry, 900, "schedule:s", first.id)
    later = await world.live(second.job_id)
    assert (later.kind, later.payload, later.priority) == ("shout", '{"copies":5,"to":"bob"}', 0)
    hand = await world.hand()
    (claimed,) = await hand.claim()
    await hand.finish(claimed)
    assert (await keeping.fates())[0] == "1: success"


async def test_a_template_keeps_its_lane_where_runs_may_overlap(world: World) -> None:
    keeping = await _lettering(world, overlap=Overlap.ALLOW)

    await keeping.at(1)

    (run,) = await keeping.runs()
    assert run.job_id is not None
    assert (await world.live(run.job_id)).lane == "post"


async def test_its_params_are_checked_by_the_schema_it_was_opened_with(world: World) -> None:
    keeping = await _lettering(world)
    await keeping.at(1)
    await world.queue.templates.delete("letters", owner="ann")
    (run,) = await keeping.runs()
    assert run.job_id is not None

    with pytest.raises(InvalidInput, match=r"params\.to"):
        await world.queue.jobs.edit_params(run.job_id, {"to": 7}, owner="ann")
    edited = await world.queue.jobs.edit_params(run.job_id, {"to": "eve"}, owner="ann")
    assert edited.payload == '{"to":"eve"}'


@pytest.mark.req("INV-005", error=True)
async def test_what_no_template_makes_is_a_run_that_says_why_and_others_go_on(world: World) -> None:
    keeping = await _lettering(world)
    await keeping.schedule("other", target=Target(kind="plain", pool=WIDE))
    await world.queue.templates.delete("letters", owner="ann")

    await keeping.at(1)

    (run,) = await keeping.runs()
    assert (await keeping.fates(), run.job_id) == (["1: error launch"], None)
    assert "no template 'letters'" in str(run.error_message)
    assert await keeping.fates("other") == ["1: pending"]

    await world.queue.templates.create(LETTERS, owner="eve")
    await keeping.at(2)
    assert (await keeping.fates())[-1] == "2: error launch"  # another owner's is none

    await world.queue.templates.delete("letters", owner="eve")
    await world.queue.templates.create(
        NewTemplate(name="letters", kind="send", schema={"required": ["cc"]}), owner="ann"
    )
    await keeping.at(3)
    assert "cc" in str((await keeping.runs())[-1].error_message)


@pytest.mark.req("INV-005", error=True)
async def test_a_target_that_could_not_run_now_is_refused_when_it_is_saved(world: World) -> None:
    keeping = Keeping(world)
    with pytest.raises(InvalidInput, match="no template 'letters'"):
        await keeping.schedule(target=TARGET)
    await world.queue.templates.create(LETTERS, owner="ann")
    with pytest.raises(InvalidInput, match=r"params\.to"):
        await keeping.schedule(target=Target(kind="template:letters", params={"to": 7}))
    with pytest.raises(InvalidInput, match="no template 'letters'"):
        await world.queue.schedules.create(owner="eve", cadence=MINUTELY, target=TARGET)
    assert await world.queue.schedules.list(owner=None) == []

    await keeping.schedule(target=TARGET)
    with pytest.raises(InvalidInput, match=r"params\.to"):
        await keeping.schedules.edit("s", owner="ann", target=Target(kind="template:letters", params={"to": 7}))
    assert (await keeping.get()).revision == 1


@pytest.mark.parametrize(
    ("said", "field"),
    [({"pool": PoolName("wide")}, "pool"), ({"priority": 1}, "priority"), ({"timeout_ms": 9}, "timeout_ms")],
)
def test_what_a_template_says_is_not_said_twice(said: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput, match="for the template to say") as refused:
        Target(kind="template:letters", **said)  # type: ignore[arg-type]
    assert refused.value.field == field
    with pytest.raises(InvalidInput, match="not a name"):
        Target(kind="template:")


async def test_a_run_by_hand_runs_the_template_of_now(world: World) -> None:
    keeping = await _lettering(world)
    await world.queue.templates.update(NewTemplate(name="letters", kind="shout", pool=WIDE), owner="ann", version=1)

    run = await keeping.schedules.run_now("s", owner="ann")

    assert run.job_id is not None
    assert (await world.live(run.job_id)).kind == "shout"
    await world.queue.templates.delete("letters", owner="ann")
    with pytest.raises(InvalidInput, match="no template"):
        await keeping.schedules.run_now("s", owner="ann")
