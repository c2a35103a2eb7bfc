"""A backup is complete or absent, and nobody has to stop for it."""

import asyncio
import subprocess
from pathlib import Path

import apsw
import pytest

from duly.domain.errors import Conflict, InvalidInput, Unavailable
from duly.storage.executor import Executor
from tests.adapters.sqlite.tally import adding, bumping, counter, entries, tally_at

pytestmark = pytest.mark.req("DEC-002")


def test_a_backup_taken_during_writes_is_one_consistent_moment(tmp_path: Path) -> None:
    async def paired(tx: Executor) -> None:
        await tx.fetch("bump", name="left")
        await tx.fetch("bump", name="right")

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            await tally.transact(paired)
            done = False

            async def keep_writing() -> int:
                written = 1
                while not done:
                    await tally.transact(paired)
                    written += 1
                return written

            writing = asyncio.ensure_future(keep_writing())
            for number in range(3):
                await tally.backup(tmp_path / f"copy{number}.db")
            done = True
            written = await writing

        for number in range(3):
            async with tally_at(tmp_path / f"copy{number}.db") as copy:
                assert 1 <= await counter(copy, "left") == await counter(copy, "right") <= written
                await copy.transact(adding("alive"))
        assert written > 1

    asyncio.run(scenario())


def test_a_backup_is_one_file_for_its_owner_with_all_that_was_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            await tally.transact(adding("a"))
            await tally.backup(folder / "copy.db")

    asyncio.run(scenario())
    assert [file.name for file in folder.iterdir()] == ["copy.db"]
    assert (folder / "copy.db").stat().st_mode & 0o777 == 0o600
    assert apsw.Connection(str(folder / "copy.db")).execute("SELECT id FROM entries").fetchall() == [("a",)]


def test_memory_can_be_saved_to_a_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(":memory:") as tally:
            await tally.transact(adding("a"))
            await tally.backup(tmp_path / "copy.db")
            await tally.transact(bumping("alive"))
        async with tally_at(tmp_path / "copy.db") as copy:
            assert await entries(copy) == {"a": 1}

    asyncio.run(scenario())


@pytest.mark.req("DEC-002", error=True)
def test_a_backup_never_overwrites_and_names_a_missing_folder(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            for taken in ("precious", "dangling", "t.db"):
                with pytest.raises(Conflict, match="a backup never overwrites"):
                    await tally.backup(tmp_path / taken)
            with pytest.raises(InvalidInput, match=r"does not exist \(create it"):
                await tally.backup(tmp_path / "missing" / "copy.db")

    asyncio.run(scenario())
    assert (tmp_path / "precious").read_text() == "keep me"


@pytest.mark.req("DEC-002", error=True)
def test_a_backup_onto_a_full_disk_leaves_no_part_of_itself(tmp_path: Path) -> None:
    mounted = tmp_path / "small"
    mounted.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mounted], check=False).returncode:
        pytest.skip("mounting a small disk needs root")

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            for n in range(100):
                await tally.transact(adding(f"{n}-{'x' * 2_000}"))
            with pytest.raises(Unavailable, match="the disk is full"):
                await tally.backup(mounted / "copy.db")
            await tally.transact(adding("unharmed"))

    try:
        asyncio.run(scenario())
        assert list(mounted.iterdir()) == []
    finally:
        subprocess.run(["umount", mounted], check=True)
