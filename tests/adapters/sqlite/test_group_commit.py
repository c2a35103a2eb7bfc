"""Many callers share a commit, and nothing else."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from duly.domain.instants import Instant, Micros
from duly.storage.errors import ConstraintViolated
from duly.storage.executor import Executor
from duly.storage.sqlite.filelock import FileLock
from tests.adapters.sqlite.tally import (
    Commits,
    Tally,
    adding,
    bumping,
    counter,
    entries,
    kinds,
    tally_at,
    until,
)

pytestmark = pytest.mark.req("DEC-002")


def test_one_callers_error_rolls_back_its_own_writes_only(tmp_path: Path) -> None:
    async def writes_then_fails(tx: Executor) -> None:
        await tx.fetch("add_entry", id="half", amount=1)
        raise LookupError("mine alone")

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            commits = Commits(tally)
            works: list[Any] = [adding("a"), writes_then_fails, adding("b")]
            outcomes = await asyncio.gather(*map(tally.transact, works), return_exceptions=True)

            assert kinds(outcomes) == ["str", "LookupError", "str"]
            assert await entries(tally) == {"a": 1, "b": 1}
            assert commits.count == 1

    asyncio.run(scenario())


def test_64_callers_share_far_fewer_commits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            commits = Commits(tally)

            async def caller() -> None:
                for _ in range(10):
                    await tally.transact(bumping("shared"))

            await asyncio.gather(*(caller() for _ in range(64)))

            assert await counter(tally, "shared") == 640
            assert commits.count <= 40

    asyncio.run(scenario())


@pytest.mark.parametrize("beside", [0, 5], ids=["alone", "in a batch"])
def test_a_work_that_awaits_anything_else_is_named_and_undone(tmp_path: Path, beside: int) -> None:
    async def daydreams(tx: Executor) -> None:
        await tx.fetch("add_entry", id="half", amount=1)
        await asyncio.sleep(0)

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            works: list[Any] = [daydreams, *(adding(f"e{n}") for n in range(beside))]
            outcomes = await asyncio.gather(*map(tally.transact, works), return_exceptions=True)

            assert isinstance(outcomes[0], RuntimeError)
            assert "daydreams awaited something other than its transaction" in str(outcomes[0])
            assert list(await entries(tally)) == [f"e{n}" for n in range(beside)]

    asyncio.run(scenario())


def test_a_transaction_inside_a_work_is_reported_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:

            async def nests(tx: Executor) -> None:
                await tally.transact(adding("inner"))

            with pytest.raises(RuntimeError, match="awaited something other"):
                await tally.transact(nests)
            await tally.transact(adding("later"))

            assert await entries(tally) == {"later": 1}

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
def test_a_broken_constraint_is_named_and_stays_with_its_caller(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            outcomes = await asyncio.gather(
                tally.transact(adding("a")),
                tally.transact(adding("a")),
                tally.transact(adding("b", amount=-1)),
                return_exceptions=True,
            )

            assert kinds(outcomes) == ["str", "ConstraintViolated", "ConstraintViolated"]
            assert "entries.id" in str(outcomes[1])
            assert "amount_is_not_negative" in str(outcomes[2])
            assert await entries(tally) == {"a": 1}

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
def test_a_work_cannot_hide_a_failed_statement_and_commit_the_rest(tmp_path: Path) -> None:
    async def hides(tx: Executor) -> str:
        await tx.fetch("add_entry", id="first", amount=1)
        try:
            await tx.fetch("add_entry", id="first", amount=1)
        except ConstraintViolated:
            return "all is well"
        return "impossible"

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            with pytest.raises(ConstraintViolated):
                await tally.transact(hides)

            assert await entries(tally) == {}

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
@pytest.mark.parametrize("beside", [0, 3], ids=["alone", "in a batch"])
def test_a_constraint_deferred_to_the_commit_fails_only_the_work_that_broke_it(tmp_path: Path, beside: int) -> None:
    async def orphans(tx: Executor) -> None:
        await tx.fetch("add_child", entry="nobody")

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            works: list[Any] = [*(adding(f"e{n}") for n in range(beside)), orphans]
            outcomes = await asyncio.gather(*map(tally.transact, works), return_exceptions=True)

            assert kinds(outcomes) == ["str"] * beside + ["ConstraintViolated"]
            assert list(await entries(tally)) == [f"e{n}" for n in range(beside)]

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
@pytest.mark.parametrize("beside", [0, 3], ids=["alone", "in a batch"])
def test_a_trigger_that_rolls_back_everything_fails_only_the_work_that_set_it_off(tmp_path: Path, beside: int) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            works = [*(adding(f"e{n}") for n in range(beside)), adding("bomb")]
            outcomes = await asyncio.gather(*map(tally.transact, works), return_exceptions=True)

            assert kinds(outcomes) == ["str"] * beside + ["ConstraintViolated"]
            assert list(await entries(tally)) == [f"e{n}" for n in range(beside)]

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
def test_a_transaction_kept_past_its_end_is_refused(tmp_path: Path) -> None:
    kept: list[Executor] = []

    async def keeps(tx: Executor) -> None:
        kept.append(tx)

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            await tally.transact(keeps)

            with pytest.raises(RuntimeError, match="has ended"):
                await kept[0].fetch("add_entry", id="late", amount=1)

    asyncio.run(scenario())


def test_each_binds_columns_by_row_and_constants_once_and_answers_all_rows(tmp_path: Path) -> None:
    async def work(tx: Executor) -> list[tuple[Any, ...]]:
        await tx.each("add_plain_entries", [("p", 1), ("q", 2)])
        await tx.each("add_plain_entries", [])
        return list(await tx.each("add_entries", [("a", 1), ("b", 2)], bonus=10))

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            assert sorted(await tally.transact(work)) == [(11, "a"), (12, "b")]
            assert await entries(tally) == {"a": 11, "b": 12, "p": 1, "q": 2}

    asyncio.run(scenario())


def test_callers_of_several_event_loops_share_one_writer(tmp_path: Path) -> None:
    async def callers(tally: Tally) -> None:
        async def caller() -> None:
            for _ in range(20):
                await tally.transact(bumping("shared"))

        await asyncio.gather(*(caller() for _ in range(5)))

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            threads = [threading.Thread(target=lambda: asyncio.run(callers(tally))) for _ in range(4)]
            for thread in threads:
                thread.start()
            await callers(tally)
            for thread in threads:
                await asyncio.to_thread(thread.join)

            assert await counter(tally, "shared") == 5 * 5 * 20

    asyncio.run(scenario())


def test_a_cancelled_caller_whose_work_has_not_begun_writes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "t.db"
        async with tally_at(path) as tally:
            other = FileLock(f"{path}-lock")
            other.acquire()
            first = asyncio.ensure_future(tally.transact(adding("first")))
            await until(tally._writer.mutex.locked)
            second = asyncio.ensure_future(tally.transact(adding("second")))
            await until(lambda: len(tally._writer._waiting) == 2)
            second.cancel()
            await asyncio.wait([second])
            other.release()
            await first

            assert second.cancelled()
            assert await entries(tally) == {"first": 1}
            other.close()

    asyncio.run(scenario())


def test_a_cancelled_caller_whose_work_has_begun_commits_all_the_same(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    async def slow(tx: Executor) -> None:
        begun.set()
        go_on.wait(30)
        await tx.fetch("add_entry", id="stands", amount=1)

    async def scenario() -> None:
        path = tmp_path / "t.db"
        async with tally_at(path) as tally:
            other = FileLock(f"{path}-lock")
            other.acquire()  # so that the work runs in the writer's thread, where it can be overtaken
            caller = asyncio.ensure_future(tally.transact(slow))
            await until(tally._writer.mutex.locked)
            other.release()
            await asyncio.to_thread(begun.wait, 30)
            caller.cancel()
            await asyncio.wait([caller])
            go_on.set()
            await tally.transact(adding("after"))

            assert caller.cancelled()
            assert await entries(tally) == {"after": 1, "stands": 1}
            other.close()

    asyncio.run(scenario())


def test_a_batch_ends_when_its_time_is_up_so_that_the_first_is_not_kept_waiting(tmp_path: Path) -> None:
    class SlowClock:
        era = "test"
        reading = 0

        def now(self) -> Instant:
            return Instant(0)

        def lease_now(self) -> Micros:
            self.reading += 20_000
            return Micros(self.reading)

        async def agree(self) -> None: ...

        async def sleep(self, duration: Micros) -> None: ...

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db", clock=SlowClock()) as tally:
            commits = Commits(tally)
            await asyncio.gather(*(tally.transact(adding(f"e{n:02}")) for n in range(20)))

            assert len(await entries(tally)) == 20
            assert commits.count >= 5

    asyncio.run(scenario())


@pytest.mark.parametrize("name", [":memory:", "t.db"])
def test_inline_needs_no_thread_and_no_socket(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        before = threading.active_count()
        path = name if name == ":memory:" else tmp_path / name
        async with tally_at(path, inline=True) as tally:
            listener = tally.wakeups.listen()
            await asyncio.gather(*(tally.transact(bumping("shared")) for _ in range(1_200)))
            await asyncio.gather(tally.transact(adding("a")), tally.transact(adding("b")))

            assert await counter(tally, "shared") == 1_200
            assert tally._writer._thread is None
            assert not (tmp_path / "t.db-wake").exists()
            listener.close()
        assert threading.active_count() <= before + 1  # the test's own, which opened the file

    asyncio.run(scenario())


def test_many_commits_keep_the_log_short(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            for batch in range(60):
                rows = [(f"{batch}-{n}-" + "x" * 500, 1) for n in range(200)]

                async def work(tx: Executor, rows: list[Any] = rows) -> None:
                    await tx.each("add_plain_entries", rows)

                await tally.transact(work)

            assert (tmp_path / "t.db").stat().st_size > 10_000_000
            assert (tmp_path / "t.db-wal").stat().st_size < 16_000_000

    asyncio.run(scenario())
