"""The log of a database that is written to is grown once, and whatever is cut off leaves no harm."""

import asyncio
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from duly.storage.sqlite.log import CHECKPOINT_PAGES, GROW_AFTER_PAGES
from tests.adapters.sqlite.tally import Tally, adding, entries, tally_at

pytestmark = pytest.mark.req("DEC-002")

_FULL_BYTES = CHECKPOINT_PAGES * 2048


async def _write_much(tally: Tally) -> list[str]:
    """More than makes the log grow: every commit writes two pages at least."""
    names = [f"entry-{number:04}" for number in range(GROW_AFTER_PAGES)]
    for name in names:
        await tally.transact(adding(name))
    return names


def test_a_log_that_is_written_to_is_grown_once_and_for_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db", inline=True) as tally:
            await tally.transact(adding("first"))
            assert (tmp_path / "t.db-wal").stat().st_size < _FULL_BYTES

            await _write_much(tally)

            assert (tmp_path / "t.db-wal").stat().st_size >= _FULL_BYTES

    asyncio.run(scenario())


def test_what_was_committed_is_found_in_a_grown_log_whose_process_was_cut_off(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db", inline=True) as tally:
            names = await _write_much(tally)
            for suffix in ("", "-wal"):
                shutil.copy(tmp_path / f"t.db{suffix}", tmp_path / f"copy.db{suffix}")

        async with tally_at(tmp_path / "copy.db", inline=True) as copy:
            assert list(await entries(copy)) == names
            await copy.transact(adding("later"))
            assert list(await entries(copy)) == [*names, "later"]

    asyncio.run(scenario())


def test_a_log_is_not_grown_on_a_disk_that_has_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free_bytes = 5 * _FULL_BYTES
    monkeypatch.setattr(os, "fstatvfs", lambda _: SimpleNamespace(f_bavail=free_bytes, f_frsize=1))

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db", inline=True) as tally:
            names = await _write_much(tally)

            assert (tmp_path / "t.db-wal").stat().st_size < _FULL_BYTES
            assert list(await entries(tally)) == names

    asyncio.run(scenario())


def test_a_log_that_cannot_be_grown_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int, __: bytes) -> int:
        raise OSError("no space left")

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db", inline=True) as tally:
            monkeypatch.setattr(os, "write", refuse)
            names = await _write_much(tally)
            monkeypatch.undo()

            assert list(await entries(tally)) == names

    asyncio.run(scenario())
