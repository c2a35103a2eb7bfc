"""Several processes write one file: none starves, none hears of a lock, none leaves one behind."""

import asyncio
import random
import subprocess
from pathlib import Path

import apsw
import pytest

from duly.domain.errors import Unavailable
from duly.domain.instants import Instant, Micros
from duly.storage.sqlite.filelock import FileLock
from duly.storage.sqlite.writer import BUSY_MICROS
from tests.adapters.sqlite import children
from tests.adapters.sqlite.tally import adding, bumping, counter, entries, tally_at, until

pytestmark = pytest.mark.req("DEC-002")


@pytest.mark.req("CON-001")
def test_eight_processes_count_exactly_and_are_never_told_of_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    processes = [children.start("count", path, 4, 50) for _ in range(8)]
    for child in processes:
        assert children.line(child) == "ready"
    for child in processes:
        children.go(child)
    for child in processes:
        children.finish(child)

    async def total() -> int:
        async with tally_at(path) as tally:
            return await counter(tally, "shared")

    assert asyncio.run(total()) == 8 * 4 * 50


def test_killing_a_writer_leaves_no_lock_and_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    moments = random.Random(20)  # any moment will do

    async def scenario() -> None:
        acknowledged: set[str] = set()
        async with tally_at(path) as tally:
            for life in range(20):
                child = children.start("acknowledge", path, f"life{life}")
                for _ in range(moments.randrange(1, 60)):
                    acknowledged.add(await asyncio.to_thread(children.line, child))
                    await tally.transact(bumping("survivor"))
                rest = await asyncio.to_thread(children.kill, child)
                acknowledged.update(rest.split("\n")[:-1])
                async with asyncio.timeout(10):
                    acknowledged.add(await tally.transact(adding(f"survivor-{life}")))
            found = set(await entries(tally))

        assert acknowledged - found == set()
        assert len(acknowledged) > 200

    asyncio.run(scenario())
    assert apsw.Connection(str(path)).pragma("integrity_check") == "ok"


def test_a_process_that_dies_with_the_lock_frees_it_although_its_fork_lives_on(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    child = children.start("hold_lock_in_orphan", path)
    assert children.line(child) == "orphan"
    child.wait(30)

    lock = FileLock(f"{path}-lock")
    assert lock.try_acquire()
    lock.close()
    child.communicate("bye\n", timeout=30)


def test_a_program_that_does_not_know_our_lock_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "t.db"

    async def scenario() -> None:
        async with tally_at(path) as tally:
            stranger = apsw.Connection(str(path))
            stranger.execute("BEGIN IMMEDIATE")
            waiting = [asyncio.ensure_future(tally.transact(adding(f"e{n}"))) for n in range(5)]
            await until(lambda: tally._writer._busy_since is not None)
            assert not any(caller.done() for caller in waiting)
            stranger.execute("COMMIT")

            assert await asyncio.gather(*waiting) == [f"e{n}" for n in range(5)]
            stranger.close()

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
def test_a_program_that_never_lets_go_makes_the_store_unavailable(tmp_path: Path) -> None:
    class Leaping:
        era = "test"
        reading = 0

        def now(self) -> Instant:
            return Instant(0)

        def lease_now(self) -> Micros:
            self.reading += BUSY_MICROS // 4
            return Micros(self.reading)

        async def agree(self) -> None: ...

        async def sleep(self, duration: Micros) -> None: ...

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db", clock=Leaping()) as tally:
            stranger = apsw.Connection(str(tmp_path / "t.db"))
            stranger.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="another program has held the database"):
                await tally.transact(adding("never"))
            stranger.execute("ROLLBACK")

            assert await tally.transact(adding("then")) == "then"
            stranger.close()

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path) -> None:
    child = children.start("fork", tmp_path / "t.db")
    out = children.finish(child)

    assert "refused" in out
    assert "open it again in this process" in out
    assert "child 0 after,before" in out


def test_processes_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    processes: list[subprocess.Popen[str]] = [children.start("migrate", path) for _ in range(4)]
    for child in processes:
        assert children.line(child) == "ready"
    for child in processes:
        children.go(child)
    for child in processes:
        children.finish(child)

    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT version, name FROM schema_migrations").fetchall() == [(1, "tally")]
    assert connection.execute("SELECT value FROM counters").fetchall() == [(4,)]
