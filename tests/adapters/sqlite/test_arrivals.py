"""Jobs that were put alone lie in a table of their own until somebody writes: nothing is lost or doubled on the way."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from duly.domain.ids import PoolName
from duly.domain.jobs import Entry
from duly.ports.storage import Storage, Transaction
from duly.storage.sqlite.arrivals import ABSORB_AT
from duly.storage.sqlite.connection import open_reader
from duly.storage.sqlite.reader import SqliteReader
from duly.storage.sqlite.storage import SqliteStorage
from tests.adapters.sqlite import children
from tests.contracts.world import WIDE, World, new

pytestmark = pytest.mark.req("DEC-002")

_ARRIVED = "SELECT id FROM arrivals ORDER BY position"


class _Inline(World):
    """Without a thread that might hold a put up, so that it would go another way."""

    async def _opened(self) -> Storage:
        return await SqliteStorage.open(self.place, clock=self.clock, inline=True)


def _in_world(path: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        world = _Inline("sqlite", str(path))
        await world.open()
        try:
            await scenario(world)
            await world.keeps_the_laws()
        finally:
            await world.close()

    asyncio.run(run())


async def _arrived(world: World) -> list[str]:
    return [job for (job,) in await world.rows(_ARRIVED)]


async def _write(world: World) -> None:
    await world.pool("other", 1)


def test_only_a_plain_job_that_is_put_alone_arrives(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for asked in ({"key": "k"}, {"lane": "l"}, {"resources": ["ollama"]}):
            await world.put("special", **asked)
        await world.queue.jobs.put_many([new("many"), new("many")])
        assert await _arrived(world) == []

        plain = await world.put("plain")
        assert await _arrived(world) == [plain]

    _in_world(tmp_path / "d.db", scenario)


def test_whatever_is_written_next_makes_jobs_of_them_in_their_order(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        puts = [await world.put(f"n{number}") for number in range(5)]
        assert await _arrived(world) == puts

        await _write(world)

        assert await _arrived(world) == []
        assert [job for (job,) in await world.rows("SELECT id FROM jobs ORDER BY rowid")] == puts

    _in_world(tmp_path / "d.db", scenario)


def test_who_only_puts_absorbs_now_and_then(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        puts = [await world.put("work") for _ in range(ABSORB_AT + 10)]

        assert await _arrived(world) == puts[ABSORB_AT:]
        assert len(await world.kinds()) == len(puts)

    _in_world(tmp_path / "d.db", scenario)


def test_a_work_that_fails_leaves_them_where_they_were(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        put = await world.put("work")

        async def fail(tx: Transaction) -> None:
            assert (await tx.jobs.lock(put)).id == put
            raise RuntimeError("on purpose")

        with pytest.raises(RuntimeError, match="on purpose"):
            await world.transact(fail)

        assert await _arrived(world) == [put]
        assert await world.kinds() == ["work"]

    _in_world(tmp_path / "d.db", scenario)


def test_a_file_whose_process_was_cut_off_still_has_them(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.put("work")
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"d.db{suffix}", tmp_path / f"copy.db{suffix}")

    async def afterwards(world: World) -> None:
        assert await (await world.hand()).work_off() == ["work"]

    _in_world(tmp_path / "d.db", scenario)
    _in_world(tmp_path / "copy.db", afterwards)


def test_a_killed_process_leaves_each_job_it_was_told_of_once(tmp_path: Path) -> None:
    child = children.start("put_alone", tmp_path / "d.db")
    told = [children.line(child) for _ in range(ABSORB_AT * 2 + 50)]
    told += children.kill(child).splitlines()

    async def scenario(world: World) -> None:
        ids = [job.id for job in await world.queue.jobs.upcoming(PoolName("default"), most=10_000)]
        assert len(ids) == len(set(ids))
        assert set(filter(lambda line: len(line) == len(told[0]), told)) <= set(ids)
        await _write(world)
        assert [job.id for job in await world.queue.jobs.upcoming(PoolName("default"), most=10_000)] == ids

    _in_world(tmp_path / "d.db", scenario)


def test_a_copy_has_them(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.put("work")
        storage: Any = world.queue.storage
        await storage.backup(tmp_path / "copy.db")

    async def afterwards(world: World) -> None:
        assert await world.kinds() == ["work"]

    _in_world(tmp_path / "d.db", scenario)
    _in_world(tmp_path / "copy.db", afterwards)


def test_who_may_only_read_sees_them(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        put = await world.put("work")
        reader = await SqliteReader.open(tmp_path / "d.db")
        try:
            job = await reader.read(lambda tx: tx.jobs.get(put))
            upcoming = await reader.read(lambda tx: tx.jobs.upcoming(WIDE, 10))
        finally:
            await reader.close()
        assert job is not None
        assert upcoming == [job]
        assert await _arrived(world) == [put]

    _in_world(tmp_path / "d.db", scenario)


def test_one_whose_position_another_process_took_is_put_all_the_same(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        other = await world.another()
        first = await world.put("first")
        second = await other.jobs.put(new("second"))  # at the same instant, by a process with places of its own

        assert (await world.live(first)).position == (await world.live(second.job_id)).position
        assert sorted(await world.kinds()) == ["first", "second"]

    _in_world(tmp_path / "d.db", scenario)


def test_an_id_that_came_twice_is_one_job(tmp_path: Path) -> None:
    """Nobody draws an id twice; but if somebody did, no later transaction may fail for it."""

    async def scenario(world: World) -> None:
        now = world.clock.now()
        for position in (1, 2):
            entry = Entry(id="job_x", new=new("x"), payload="{}", created_at=now, position=position)  # type: ignore[arg-type]
            world.queue.storage.put_at_once(entry)
        await _write(world)
        assert await world.kinds() == ["x"]

    _in_world(tmp_path / "d.db", scenario)


def test_a_memory_database_shows_them_too() -> None:
    async def scenario() -> None:
        world = World("sqlite", ":memory:")
        await world.open()
        await world.put("work")
        assert await world.kinds() == ["work"]
        await world.close()

    asyncio.run(scenario())


def test_readers_see_every_column_of_a_job_under_its_name(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        columns = [name for (name,) in await world.rows("SELECT name FROM pragma_table_info('jobs', 'main')")]
        storage: Any = world.queue.storage
        reader = open_reader(str(tmp_path / "d.db"), view=storage._reading._readers._view)
        seen = [name for (name,) in reader.execute("SELECT name FROM pragma_table_info('jobs')")]
        reader.close()
        assert sorted(seen) == sorted(columns)

    _in_world(tmp_path / "d.db", scenario)


@pytest.mark.parametrize("name", ["job_by_id", "is_known", "live_chain", "upcoming", "live_jobs", "pools_with_work"])
def test_reading_through_the_view_goes_by_the_indexes_of_jobs(tmp_path: Path, name: str) -> None:
    async def scenario(world: World) -> None:
        storage: Any = world.queue.storage
        statement = storage._statements[name]
        reader = open_reader(str(tmp_path / "d.db"), view=storage._reading._readers._view)
        rows = reader.execute(f"EXPLAIN QUERY PLAN {statement.sql}", [None] * len(statement.parameters))
        plan = "\n".join(row[3] for row in rows)
        reader.close()
        assert "SEARCH main.jobs USING" in plan, plan
        assert "SCAN main.jobs" not in plan, plan

    _in_world(tmp_path / "d.db", scenario)


def test_a_file_of_an_older_duly_gets_the_table(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.put("work")
        assert len(await _arrived(world)) == 1

    async def as_it_was() -> None:
        world = _Inline("sqlite", str(tmp_path / "d.db"))
        await world.open()
        await world.queue.jobs.put_many([new("earlier")])
        await world.rows("DROP TABLE arrivals")
        await world.rows("DELETE FROM schema_migrations WHERE version >= 5")
        await world.close()

    asyncio.run(as_it_was())
    _in_world(tmp_path / "d.db", scenario)

    async def afterwards(world: World) -> None:
        assert await world.kinds() == ["earlier", "work"]

    _in_world(tmp_path / "d.db", afterwards)
