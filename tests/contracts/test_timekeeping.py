"""Slots become runs, on time or late, each once."""

import pytest

from tests.contracts.keeping import Keeping
from tests.contracts.world import World


@pytest.mark.req("GRAPH-07")
async def test_a_slot_that_fires_becomes_a_run_and_a_job_of_its_target(world: World) -> None:
    keeping = Keeping(world)
    await keeping.schedule()

    await keeping.at(1)

    assert await keeping.fates() == ["1: pending"]
    hand = await world.hand()
    (job,) = await hand.claim()
    assert (job.kind, job.key, job.lane) == ("s", "s:2027-01-15T08:01:00Z", "schedule:s")
    assert await keeping.fates() == ["1: running"]
    await hand.finish(job)
    assert await keeping.fates() == ["1: success"]


