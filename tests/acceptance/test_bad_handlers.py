"""Handlers that misbehave, in real workers: docs/workers.md says what becomes of each, and these show it."""

import asyncio
import signal
from pathlib import Path

import pytest

from duly.bootstrap import Queue
from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import FinishedJob, JobStatus, NewJob
from duly.domain.logs import MOST_BYTES_PER_JOB
from duly.domain.pools import Pool
from duly.domain.retries import NO_RETRY, RetryPolicy
from tests.acceptance import checker
from tests.acceptance.processes import POLL_SECONDS, Workers, opened, until

pytestmark = pytest.mark.serial

WIDE = PoolName("wide")
LIMITS = {WIDE: 100}
AT_ONCE = RetryPolicy(max_attempts=3, backoff_ms=0)
SECONDS_OF_C = 300_000_000  # rounds, about four seconds of them

only_sqlite = pytest.mark.parametrize("store", ["sqlite"])  # the store has no part in it


def _job(kind: str, *, retry: RetryPolicy = NO_RETRY, timeout_ms: int | None = None, **params: object) -> NewJob:
    return NewJob(kind=kind, params=params, pool=WIDE, retry=retry, timeout_ms=timeout_ms)


async def _ended(queue: Queue, job_id: JobId, *, within: float = 60) -> FinishedJob:
    async with asyncio.timeout(within):
        while True:
            job = await queue.jobs.get(job_id)
            if isinstance(job, FinishedJob):
                return job
            await asyncio.sleep(POLL_SECONDS)


def _pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@only_sqlite
@pytest.mark.req("RISK-02")
def test_a_thread_that_spins_in_c_code_loses_its_worker_the_session_and_no_job(
    database_url: str, tmp_path: Path
) -> None:
    async def spin(workers: Workers) -> None:
        async with opened(database_url, LIMITS) as queue:
            spinning = workers.start({WIDE: 1})
            await workers.all_ready()
            put = await queue.jobs.put(_job("spin_in_thread", retry=AT_ONCE, rounds=SECONDS_OF_C))
            await asyncio.sleep(0.3)
            other = workers.start({WIDE: 1})

            first = await _ended(queue, put.job_id)
            assert (first.error or "").startswith("worker lost")
            _, retry = await queue.jobs.chain(put.job_id)
            assert (await _ended(queue, retry.id)).result == '"attempt 2"'

            workers.send(other, signal.SIGTERM)
            assert await workers.exit_code(other, within=30) == 0
            await _ended(queue, (await queue.jobs.put(_job("work", n=1))).job_id)
            assert [line.pid for line in workers.journal.left()] == [spinning], "it came back"
            assert await queue.jobs.get(put.job_id) == first, "its late answer changed nothing"
        await workers.stop_all()

    with Workers(database_url, tmp_path, lease_ms=1_000) as workers:
        asyncio.run(spin(workers))


@only_sqlite
def test_a_process_that_spins_in_c_code_is_killed_and_nobody_else_notices(database_url: str, tmp_path: Path) -> None:
    async def spin(workers: Workers) -> None:
        async with opened(database_url, LIMITS) as queue:
            workers.start({WIDE: 2})
            await workers.all_ready()
            spinning = await queue.jobs.put(_job("spin_isolated", timeout_ms=2_500, rounds=10**12))
            other = await queue.jobs.put(_job("work", n=1, work_ms=1_500))

            assert (await _ended(queue, other.job_id)).status is JobStatus.COMPLETED
            job = await _ended(queue, spinning.job_id)
            assert (job.status, job.error) == (JobStatus.FAILED, "timed out after 2500 ms")
        facts = await checker.facts_of(database_url)
        assert len(facts.sessions) == 1
        assert len({row.session for row in facts.finished}) == 1, "its lease never ran out"
        await workers.stop_all()

    with Workers(database_url, tmp_path, lease_ms=1_000) as workers:
        asyncio.run(spin(workers))


@only_sqlite
@pytest.mark.parametrize("kind", ["fork_isolated", "fork_program"])
def test_whatever_a_handler_forks_dies_with_a_worker_that_is_killed(
    database_url: str, tmp_path: Path, kind: str
) -> None:
    async def kill(workers: Workers) -> None:
        path = tmp_path / "pids"
        forked = {"fork_isolated": 3, "fork_program": 2}[kind]
        async with opened(database_url, LIMITS) as queue:
            worker = workers.start({WIDE: 1})
            await queue.jobs.put(_job(kind, path=str(path)))
            await until(lambda: len(_pids(path)) == forked, within=60, what="all have been forked")
            assert all(map(_is_alive, _pids(path)))

            workers.kill(worker)

            await until(lambda: not any(map(_is_alive, _pids(path))), within=10, what="all of them are gone")

    with Workers(database_url, tmp_path, lease_ms=30_000) as workers:
        asyncio.run(kill(workers))


@only_sqlite
def test_a_program_that_prints_a_gigabyte_fills_no_memory_and_holds_nobody_up(
    database_url: str, tmp_path: Path
) -> None:
    async def flood(workers: Workers) -> None:
        async with opened(database_url, LIMITS) as queue:
            worker = workers.start({WIDE: 2})
            # As much as a handler's process and its log take at all.
            await _ended(
                queue, (await queue.jobs.put(_job("rest_isolated", path=str(tmp_path / "pid"), seconds=0))).job_id
            )
            before = _peak_bytes(worker)
            flooding = await queue.jobs.put(_job("flood"))
            beside = [await _ended(queue, (await queue.jobs.put(_job("work", n=n))).job_id) for n in range(10)]

            job = await _ended(queue, flooding.job_id, within=120)

            assert (job.status, job.exit_code) == (JobStatus.COMPLETED, 0)
            assert max(other.finished_at for other in beside) < job.finished_at
            assert _peak_bytes(worker) - before < 32 * 1_048_576
            lines = await queue.logs.lines(job.id, most=10_000)
            while page := await queue.logs.lines(job.id, after=lines[-1].seq, most=10_000):
                lines += page
            (gap,) = [line.text for line in lines if line.level == "warning"]
            kept = sum(len(line.text) + 1 for line in lines if line.level == "stdout")
            assert int(gap.split()[1].replace(",", "")) + kept == 1_073_741_824
            assert kept < MOST_BYTES_PER_JOB
        await workers.stop_all()

    with Workers(database_url, tmp_path, lease_ms=30_000) as workers:
        asyncio.run(flood(workers))


def _peak_bytes(pid: int) -> int:
    """The most memory a process ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    (peak,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(peak) * 1024


@pytest.mark.req("CON-003")
def test_a_worker_told_to_stop_lets_every_kind_of_handler_end_and_gives_back_what_never_started(
    database_url: str, tmp_path: Path
) -> None:
    async def stop(workers: Workers) -> None:
        path = tmp_path / "pids"
        async with opened(database_url, LIMITS) as queue:
            await queue.pools.define(Pool(name=WIDE, slots=100, prefetch=2))
            worker = workers.start({WIDE: 2}, "--grace-ms=20000")
            await workers.all_ready()
            running = [_job(f"rest_{how}", path=str(path), seconds=1.5) for how in ("in_thread", "isolated")]
            ran = await queue.jobs.put_many(running)
            await until(lambda: len(_pids(path)) == 2, within=60, what="both run")
            held = await queue.jobs.put_many([_job("work", n=n) for n in range(3)])
            async with asyncio.timeout(30):
                while len(await queue.jobs.upcoming(WIDE)) > 1:  # noqa: ASYNC110 - a row rings no bell
                    await asyncio.sleep(POLL_SECONDS)

            workers.send(worker, signal.SIGTERM)
            assert await workers.exit_code(worker, within=30) == 0

            assert [(await _ended(queue, put.job_id)).result for put in ran] == ['"rested"'] * 2
            assert [job.id for job in await queue.jobs.upcoming(WIDE)] == [put.job_id for put in held]
        assert not workers.complaints()
        facts = await checker.facts_of(database_url)
        assert not facts.sessions
        assert not [pool for pool in facts.pools if pool.used]

    with Workers(database_url, tmp_path, lease_ms=30_000) as workers:
        asyncio.run(stop(workers))


@only_sqlite
@pytest.mark.req("CON-003", error=True)
def test_a_worker_told_to_stop_ends_what_does_not_within_its_grace_and_exits_all_the_same(
    database_url: str, tmp_path: Path
) -> None:
    async def stop(workers: Workers) -> None:
        kinds = ("ignore_in_thread", "fork_isolated", "fork_program")
        async with opened(database_url, LIMITS) as queue:
            worker = workers.start({WIDE: 3}, "--grace-ms=500")
            await workers.all_ready()
            puts = await queue.jobs.put_many([_job(kind, path=str(tmp_path / kind)) for kind in kinds])
            await until(lambda: [len(_pids(tmp_path / kind)) for kind in kinds] == [1, 3, 2], within=60, what="all run")

            workers.send(worker, signal.SIGTERM)
            assert await workers.exit_code(worker, within=20) == 0

            errors = [(await _ended(queue, put.job_id)).error or "" for put in puts]
            stopped = "stopped by its worker"
            assert errors == [f"{stopped}, and goes on: its executor is lost until it ends", stopped, stopped]
            assert [line.text for line in await queue.logs.lines(puts[0].job_id)] == ["I will not stop"]
        pids = [pid for kind in kinds[1:] for pid in _pids(tmp_path / kind)]
        await until(lambda: not any(map(_is_alive, pids)), within=5, what="all of them are gone")
        assert not workers.complaints()

    with Workers(database_url, tmp_path, lease_ms=30_000) as workers:
        asyncio.run(stop(workers))
