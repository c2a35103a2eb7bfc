"""One row, changed past the queue of works: as durable as any commit, and never in anybody's way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from duly.domain.errors import Unavailable
from duly.domain.instants import SECOND, Micros
from duly.storage.sqlite import writer
from duly.storage.sqlite.faults import Poisoned
from duly.storage.sqlite.filelock import FileLock
from tests.adapters.sqlite.tally import Tally, adding, entries, tally_at
from tests.adapters.sqlite.test_faults import FSYNC_FAILED, FULL, FaultyDisk, disk

__all__ = ["disk"]

pytestmark = pytest.mark.req("DEC-002")


@pytest.fixture(autouse=True)
def any_disk_is_fast_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not decide by which way a row is written here."""
    monkeypatch.setattr(writer, "INLINE_MICROS", 3_600 * SECOND)


def _add(tally: Tally, entry: str, amount: int = 1) -> bool | None:
    return tally.change_at_once("add_free_entry", (entry, amount), "entries")


def test_a_row_is_there_and_on_the_disk_when_it_returns(tmp_path: Path, disk: FaultyDisk) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            assert _add(tally, "a") is True
            assert disk.unsynced == set()
            assert await entries(tally) == {"a": 1}

    asyncio.run(scenario())


def test_a_row_that_something_is_in_the_way_of_is_told_apart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            assert [_add(tally, "a", 1), _add(tally, "a", 2)] == [True, False]
            assert await entries(tally) == {"a": 1}

    asyncio.run(scenario())


def test_listeners_hear_of_what_was_changed_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            listener = tally.wakeups.listen()
            _add(tally, "a")
            assert await listener.wait(SECOND) == {"entries"}
            _add(tally, "a")
            assert await listener.wait(Micros(10_000)) == set()

    asyncio.run(scenario())


def test_whoever_would_hold_others_up_does_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            other: asyncio.Task[Any] = asyncio.create_task(tally.transact(adding("other")))
            assert _add(tally, "a") is None, "another task is ready"
            await other

            elsewhere = FileLock(f"{tmp_path / 't.db'}-lock")
            elsewhere.acquire()
            assert _add(tally, "a") is None, "another process writes"
            elsewhere.close()

            with tally._writer.mutex:
                assert _add(tally, "a") is None, "the writer's thread is busy"
            assert await entries(tally) == {"other": 1}
            assert _add(tally, "a") is True

    asyncio.run(scenario())


def test_on_a_slow_disk_an_event_loop_is_not_held_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            monkeypatch.setattr(writer, "INLINE_MICROS", -1)
            assert _add(tally, "a") is None
            assert await entries(tally) == {}

    asyncio.run(scenario())


def test_a_closed_database_does_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            await tally.close()
            assert _add(tally, "a") is None

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, disk: FaultyDisk) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            disk.fault = FULL
            with pytest.raises(Unavailable, match="the disk is full; free some space"):
                _add(tally, "a")
            disk.fault = None
            assert await entries(tally) == {}
            assert _add(tally, "a") is True

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
def test_after_a_failed_fsync_nothing_more_is_written(tmp_path: Path, disk: FaultyDisk) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            disk.fault = FSYNC_FAILED
            with pytest.raises(Poisoned, match="restart the process"):
                _add(tally, "a")
            disk.fault = None
            assert _add(tally, "b") is None
            with pytest.raises(Poisoned):
                await tally.transact(adding("c"))
            assert await entries(tally) == {}

    asyncio.run(scenario())
