"""Workers with nothing to do leave the database alone."""

import asyncio
from pathlib import Path

import pytest

from duly.domain.ids import PoolName
from tests.acceptance.checker import Facts, facts_of
from tests.acceptance.journal import boottime
from tests.acceptance.processes import POLL_SECONDS, Workers, opened, until_in

pytestmark = pytest.mark.serial

WIDE = PoolName("wide")
WATCHED_SECONDS = 5


@pytest.mark.req("RISK-02")
def test_idle_workers_beat_three_times_per_lease_and_do_not_wake_each_other(database_url: str, tmp_path: Path) -> None:
    """A beat is a commit, which the other processes see; were it a reason to beat, they would never rest."""

    async def watch(workers: Workers) -> int:
        async with opened(database_url, {WIDE: 10}):
            for _ in range(3):
                workers.start({WIDE: 1})
            await workers.all_ready()
            await until_in(database_url, lambda facts: len(facts.sessions) == 3, within=30, what="all have a session")
            beats = await _beats_within(database_url, WATCHED_SECONDS)
        await workers.stop_all()
        return beats

    with Workers(database_url, tmp_path, lease_ms=30_000) as workers:
        beats = asyncio.run(watch(workers))

    # The first of each may fall into the watch; the next is due ten seconds later.
    assert beats <= 3


async def _beats_within(database_url: str, seconds: float) -> int:
    stop_at = boottime() + seconds
    beats = 0
    seen = _seen(await facts_of(database_url))
    while boottime() < stop_at:
        await asyncio.sleep(POLL_SECONDS)
        now = _seen(await facts_of(database_url))
        beats += sum(now[session] != seen[session] for session in seen)
        seen = now
    return beats


def _seen(facts: Facts) -> dict[str, int]:
    return {session.id: session.seen_at for session in facts.sessions}
