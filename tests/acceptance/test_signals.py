"""Workers that are told to stop, and workers that stand still for longer than their lease."""

import asyncio
import signal
from pathlib import Path

import asyncpg
import pytest

from duly.domain.groups import GroupMode, GroupStatus, NewGroup, NewMember
from duly.domain.ids import PoolName
from duly.domain.jobs import NewJob
from duly.domain.retries import RetryPolicy
from tests.acceptance import checker
from tests.acceptance.processes import POLL_SECONDS, Workers, opened, until, until_in

pytestmark = pytest.mark.serial

WIDE, ONE = PoolName("wide"), PoolName("one")
LIMITS = {WIDE: 100, ONE: 1}
AT_ONCE = RetryPolicy(max_attempts=10, backoff_ms=0)


@pytest.mark.req("DEC-008")
@pytest.mark.req("RISK-02")
def test_a_worker_told_to_stop_ends_what_runs_claims_nothing_more_and_leaves_the_queue_intact(
    database_url: str, tmp_path: Path
) -> None:
    async def stop_and_start_again(workers: Workers) -> list[str]:
        news = [NewJob(kind="work", params={"n": n, "work_ms": 1_000 if n < 2 else 0}, pool=WIDE) for n in range(20)]
        async with opened(database_url, LIMITS) as queue:
            put: list[str] = [done.job_id for done in await queue.jobs.put_many(news)]
            pid = workers.start({WIDE: 2})
            await until(lambda: len(workers.journal.entered()) == 2, within=60, what="two jobs run")
            workers.send(pid, signal.SIGTERM)
            assert await workers.exit_code(pid, within=30) == 0

            assert [job.id for job in await queue.jobs.upcoming(WIDE)] == put[2:]
        facts = await checker.facts_of(database_url)
        assert {job.status for job in facts.finished} == {"COMPLETED"}
        assert {job.id for job in facts.finished} == {line.job for line in workers.journal.left()} == set(put[:2])
        assert not [pool for pool in facts.pools if pool.used]
        assert not facts.sessions

        workers.start({WIDE: 1})
        await until(lambda: len(workers.journal.left()) == 20, within=60, what="the next worker goes on")
        await workers.stop_all()
        return put

    with Workers(database_url, tmp_path, lease_ms=30_000) as workers:
        put = asyncio.run(stop_and_start_again(workers))

    facts = asyncio.run(checker.facts_of(database_url))
    runs = checker.runs_of(workers.journal.read())
    checker.require(
        checker.lost_or_doubled(facts, put),
        checker.left_behind(facts),
        checker.entered_twice(runs),
        checker.out_of_order(runs, put),
    )


@pytest.mark.req("INV-006")
@pytest.mark.req("RISK-02")
def test_a_worker_told_to_stop_in_a_group_ends_its_member_and_leaves_the_next_to_others(
    database_url: str, tmp_path: Path
) -> None:
    async def stop_and_start_again(workers: Workers) -> None:
        async with opened(database_url, LIMITS) as queue:
            first = NewJob(kind="work", params={"n": 0, "work_ms": 1_000}, pool=WIDE)
            second = NewJob(kind="work", params={"n": 1}, pool=WIDE)
            asked = NewGroup(mode=GroupMode.SEQUENTIAL, members=[NewMember(job=first), NewMember(job=second)])
            group = await queue.groups.create(asked, owner="ann")
            pid = workers.start({WIDE: 2})
            await until(lambda: len(workers.journal.entered()) == 1, within=60, what="the first member runs")
            workers.send(pid, signal.SIGTERM)
            assert await workers.exit_code(pid, within=30) == 0

            assert [line.n for line in workers.journal.left()] == [0], "it ended, and nothing else began"
            assert len(await queue.jobs.upcoming(WIDE)) == 1, "the next member was put with its end"
            assert (await queue.groups.get(group.id, owner="ann")).status is GroupStatus.RUNNING
            workers.start({WIDE: 1})
            await until(lambda: len(workers.journal.left()) == 2, within=60, what="the next worker goes on")
            await workers.stop_all()
            assert (await queue.groups.get(group.id, owner="ann")).status is GroupStatus.COMPLETED

    with Workers(database_url, tmp_path, lease_ms=30_000) as workers:
        asyncio.run(stop_and_start_again(workers))

    facts = asyncio.run(checker.facts_of(database_url))
    checker.require(checker.left_behind(facts), checker.entered_twice(checker.runs_of(workers.journal.read())))


@pytest.mark.req("RISK-02")
def test_a_worker_that_stood_still_beyond_its_lease_is_refused_and_begins_anew(
    store: str, database_url: str, tmp_path: Path
) -> None:
    async def pause_and_go_on(workers: Workers) -> list[str]:
        async with opened(database_url, LIMITS) as queue:
            paused = workers.start({ONE: 1})
            await workers.all_ready()
            blocking = {"n": 1, "block_ms": 1_500}
            first = await queue.jobs.put(NewJob(kind="work", params=blocking, pool=ONE, retry=AT_ONCE))
            await until(lambda: len(workers.journal.entered()) == 1, within=30, what="the first worker runs the job")
            await _stop_between_transactions(store, database_url, workers, paused)

            other = workers.start({ONE: 1})
            await until(lambda: other in _leavers(workers), within=30, what="another worker has done the job")
            await until_in(
                database_url,
                lambda facts: any(row.status == "COMPLETED" for row in facts.finished),
                within=30,
                what="the other worker's report is written",
            )
            assert paused not in _leavers(workers)
            workers.send(paused, signal.SIGCONT)
            await until(lambda: paused in _leavers(workers), within=30, what="the first worker ends its run")

            workers.send(other, signal.SIGTERM)
            assert await workers.exit_code(other, within=30) == 0
            second = await queue.jobs.put(NewJob(kind="work", params={"n": 2}, pool=ONE, retry=AT_ONCE))
            await until(lambda: workers.journal.left()[-1].n == 2, within=30, what="the first worker does the next job")
            assert workers.journal.left()[-1].pid == paused
        await workers.stop_all()
        return [first.job_id, second.job_id]

    with Workers(database_url, tmp_path, lease_ms=2_000) as workers:
        first, second = asyncio.run(pause_and_go_on(workers))

    facts = asyncio.run(checker.facts_of(database_url))
    runs = checker.runs_of(workers.journal.read())
    checker.require(
        checker.lost_or_doubled(facts, [first, second]), checker.left_behind(facts), checker.entered_twice(runs)
    )
    sessions = {row.chain: [end.session for end in facts.finished if end.chain == row.chain] for row in facts.finished}
    assert len(sessions[first]) == 2, "its late report changed nothing"
    assert len({*sessions[first], *sessions[second]}) == 3, "it came back with a session of its own"


def _leavers(workers: Workers) -> set[int]:
    return {line.pid for line in workers.journal.left()}


async def _stop_between_transactions(store: str, database_url: str, workers: Workers, pid: int) -> None:
    """One that stands still while it writes holds up whoever wants to write; that is another story."""
    while True:
        workers.send(pid, signal.SIGSTOP)
        await until(lambda: _state(pid) == "T", within=10, what="it stands still")
        if not await _is_writing(store, database_url, pid):
            return
        workers.send(pid, signal.SIGCONT)
        await asyncio.sleep(POLL_SECONDS)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def _is_writing(store: str, database_url: str, pid: int) -> bool:
    if store == "sqlite":
        return _holds_a_file_lock(pid)
    connection = await asyncpg.connect(database_url)
    try:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'"
        return int(await connection.fetchval(query + " AND pid <> pg_backend_pid()")) > 0
    finally:
        await connection.close()


def _holds_a_file_lock(pid: int) -> bool:
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(lock[1] == "FLOCK" and lock[4] == str(pid) for lock in locks)
