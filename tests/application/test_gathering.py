"""Puts gathered into shared commits: each caller hears of its own job, whatever becomes of the others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from duly.application.gathering import Gathering
from duly.domain.errors import Unavailable
from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.jobs import Entry, NewJob
from duly.domain.payloads import EMPTY
from duly.ports.storage import Storage


class SlowStorage:
    """Runs works one by one, each when the test lets it; notes how many jobs each commit had."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []
        self.gate = asyncio.Semaphore(0)
        self.taken: set[str] = set()
        self.fault: BaseException | None = None

    @property
    def jobs(self) -> "SlowStorage":
        return self

    async def transact(self, work: Callable[[Any], Awaitable[Any]], *, single: bool = False) -> Any:
        assert single
        await self.gate.acquire()
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        return await work(self)

    async def put_if_free(self, jobs: list[Entry]) -> set[str]:
        self.commits.append([job.id for job in jobs])
        return {str(job.id) for job in jobs} - self.taken

    def let_go(self, count: int = 1) -> None:
        for _ in range(count):
            self.gate.release()


def _job(name: str) -> Entry:
    now = Instant(1)
    return Entry(JobId(name), NewJob(kind="work"), EMPTY, now, position=1)


async def _started(gathering: Gathering, *names: str) -> list["asyncio.Task[bool]"]:
    tasks = [asyncio.create_task(gathering.put(_job(name))) for name in names]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


def _gathering(storage: SlowStorage) -> Gathering:
    return Gathering(cast("Storage", storage))


@pytest.mark.req("GRAPH-07")
def test_callers_that_come_while_others_commit_share_the_next_commit() -> None:
    async def scenario() -> None:
        storage = SlowStorage()
        tasks = await _started(_gathering(storage), *"abcdef")

        storage.let_go(3)

        assert await asyncio.gather(*tasks) == [True] * 6
        assert storage.commits == [["a"], ["b"], ["c", "d", "e", "f"]]

    asyncio.run(scenario())


@pytest.mark.req("GRAPH-07", error=True)
def test_each_caller_is_told_whether_its_own_job_was_added() -> None:
    async def scenario() -> None:
        storage = SlowStorage()
        storage.taken = {"a", "d"}
        tasks = await _started(_gathering(storage), *"abcde")

        storage.let_go(3)

        assert await asyncio.gather(*tasks) == [False, True, True, False, True]

    asyncio.run(scenario())


def test_a_fault_is_heard_by_all_of_its_commit_and_by_nobody_else() -> None:
    async def scenario() -> None:
        storage = SlowStorage()
        gathering = _gathering(storage)
        first = await _started(gathering, "a", "b")
        shared = await _started(gathering, "c", "d")
        storage.let_go(2)
        await asyncio.gather(*first)
        storage.fault = Unavailable("the disk is full")
        storage.let_go()

        outcomes = await asyncio.gather(*shared, return_exceptions=True)

        assert [type(outcome) for outcome in outcomes] == [Unavailable, Unavailable]
        storage.let_go()
        assert await gathering.put(_job("e")), "the next one goes its way"

    asyncio.run(scenario())


def test_a_fault_of_a_lone_commit_lets_those_that_wait_go_on() -> None:
    async def scenario() -> None:
        storage = SlowStorage()
        storage.fault = Unavailable("the disk is full")
        tasks = await _started(_gathering(storage), *"abc")
        storage.let_go(3)

        outcomes = await asyncio.gather(*tasks, return_exceptions=True)

        assert isinstance(outcomes[0], Unavailable)
        assert outcomes[1:] == [True, True]

    asyncio.run(scenario())


def test_a_caller_that_gives_up_while_waiting_does_not_disturb_the_others() -> None:
    async def scenario() -> None:
        storage = SlowStorage()
        a, b, c, d = await _started(_gathering(storage), *"abcd")

        c.cancel()
        storage.let_go(3)

        assert all(await asyncio.gather(a, b, d))
        with pytest.raises(asyncio.CancelledError):
            await c

    asyncio.run(scenario())


def test_a_caller_that_gives_up_in_its_own_commit_lets_the_others_go_on() -> None:
    async def scenario() -> None:
        storage = SlowStorage()
        a, b, c = await _started(_gathering(storage), *"abc")

        a.cancel()
        b.cancel()
        storage.let_go(3)

        assert await c
        gathering_is_idle = await _started(_gathering(storage))
        assert gathering_is_idle == []

    asyncio.run(scenario())


def test_a_crowd_is_committed_in_batches_of_bounded_size() -> None:
    async def scenario() -> None:
        storage = SlowStorage()
        tasks = await _started(_gathering(storage), *(f"j{n}" for n in range(1_202)))

        storage.let_go(10)

        assert all(await asyncio.gather(*tasks))
        assert [len(commit) for commit in storage.commits] == [1, 1, 500, 500, 200]

    asyncio.run(scenario())


def test_at_most_two_commits_are_under_way() -> None:
    async def scenario() -> None:
        storage = SlowStorage()
        most = 0
        inside = 0
        transact = storage.transact

        async def counted(work: Any, *, single: bool = False) -> Any:
            nonlocal most, inside
            inside += 1
            most = max(most, inside)
            try:
                return await transact(work, single=single)
            finally:
                inside -= 1

        storage.transact = counted  # type: ignore[method-assign]
        tasks = await _started(_gathering(storage), *(f"j{n}" for n in range(50)))
        storage.let_go(60)
        await asyncio.gather(*tasks)

        assert most == 2

    asyncio.run(scenario())
