"""Readers see one moment, wait for nobody and change nothing."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from duly.domain.errors import Unavailable
from duly.storage.executor import Executor
from duly.storage.sqlite.connection import sqlite_version
from duly.storage.sqlite.filelock import FileLock
from tests.adapters.sqlite.tally import adding, entries, tally_at, until

pytestmark = pytest.mark.req("DEC-002")


def test_a_read_does_not_wait_for_a_long_write(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    async def slow(tx: Executor) -> None:
        await tx.fetch("add_entry", id="slow", amount=1)
        begun.set()
        go_on.wait(30)

    async def scenario() -> None:
        path = tmp_path / "t.db"
        async with tally_at(path) as tally:
            await tally.transact(adding("before"))
            other = FileLock(f"{path}-lock")
            other.acquire()  # sends the slow work to the writer's thread
            writing = asyncio.ensure_future(tally.transact(slow))
            await until(tally._writer.mutex.locked)
            other.release()
            await asyncio.to_thread(begun.wait, 30)

            assert await entries(tally) == {"before": 1}
            assert not writing.done()
            go_on.set()
            await writing
            assert await entries(tally) == {"before": 1, "slow": 1}
            other.close()

    asyncio.run(scenario())


def test_a_read_sees_one_moment_whatever_commits_meanwhile(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally, tally_at(tmp_path / "t.db", inline=True) as other:

            async def twice(tx: Executor) -> tuple[int, int]:
                first = len(await tx.fetch("list_entries"))
                adder = asyncio.new_event_loop()
                thread = threading.Thread(target=lambda: adder.run_until_complete(other.transact(adding("meanwhile"))))
                thread.start()
                thread.join()
                adder.close()
                return first, len(await tx.fetch("list_entries"))

            assert await tally.read(twice) == (0, 0)
            assert list(await entries(tally)) == ["meanwhile"]

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
@pytest.mark.parametrize("name", [":memory:", "t.db"])
def test_a_read_cannot_write(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with tally_at(name if name == ":memory:" else tmp_path / name) as tally:
            with pytest.raises(Unavailable, match="may not be written"):
                await tally.read(adding("a"))
            await tally.transact(adding("b"))

            assert await entries(tally) == {"b": 1}

    asyncio.run(scenario())


@pytest.mark.parametrize("name", [":memory:", "t.db"])
def test_a_read_that_raises_or_daydreams_leaves_its_connection_usable(tmp_path: Path, name: str) -> None:
    async def raises(tx: Executor) -> None:
        await tx.fetch("list_entries")
        raise LookupError

    async def daydreams(tx: Executor) -> None:
        await asyncio.sleep(0)

    async def scenario() -> None:
        async with tally_at(name if name == ":memory:" else tmp_path / name) as tally:
            for work, error in ((raises, LookupError), (daydreams, RuntimeError)):
                failing: Any = work
                with pytest.raises(error):
                    await tally.read(failing)
            await tally.transact(adding("a"))

            assert await entries(tally) == {"a": 1}

    asyncio.run(scenario())


def test_the_library_is_past_the_range_that_could_corrupt_a_shared_log() -> None:
    assert tuple(map(int, sqlite_version().split("."))) >= (3, 51, 3)
