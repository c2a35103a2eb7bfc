"""A sick disk: nothing is acknowledged that is not durable, and nobody has to guess what is wrong."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from duly.domain.errors import Unavailable
from duly.storage.sqlite import batch
from duly.storage.sqlite.faults import Poisoned
from tests.adapters.sqlite import children
from tests.adapters.sqlite.tally import adding, entries, kinds, open_tally, tally_at

pytestmark = pytest.mark.req("DEC-002", error=True)


class FaultyDisk(apsw.VFS):
    """Every file of SQLite in this process, until unregistered; `fault` is what the next writes meet."""

    def __init__(self) -> None:
        self.fault: tuple[str, type[apsw.Error], int] | None = None
        self.unsynced: set[str] = set()
        super().__init__("faulty", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> "FaultyFile":  # noqa: N802
        return FaultyFile(self, name, flags)

    def meet(self, operation: str) -> None:
        if self.fault is not None and self.fault[0] == operation:
            error = self.fault[1]("made to fail")
            error.extendedresult = self.fault[2]  # type: ignore[attr-defined]
            raise error


class FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self.disk.meet("write")
        super().xWrite(data, offset)
        self.disk.unsynced.add(self.path)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self.disk.meet("sync")
        super().xSync(flags)
        self.disk.unsynced.discard(self.path)


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk()
    yield disk
    disk.unregister()


FULL = ("write", apsw.FullError, apsw.SQLITE_FULL)
WRITE_FAILED = ("write", apsw.IOError, apsw.SQLITE_IOERR_WRITE)
FSYNC_FAILED = ("sync", apsw.IOError, apsw.SQLITE_IOERR_FSYNC)


@pytest.mark.parametrize(
    ("fault", "says"),
    [(FULL, "the disk is full; free some space"), (WRITE_FAILED, "failed to read or write")],
)
def test_a_disk_that_cannot_write_fails_the_whole_batch_and_works_again_later(
    tmp_path: Path, disk: FaultyDisk, fault: Any, says: str
) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            await tally.transact(adding("before"))
            disk.fault = fault
            outcomes = await asyncio.gather(
                *(tally.transact(adding(f"e{n}")) for n in range(5)), return_exceptions=True
            )
            assert kinds(outcomes) == ["Unavailable"] * 5
            assert all(says in str(outcome) and "t.db" in str(outcome) for outcome in outcomes)
            disk.fault = None

            assert await entries(tally) == {"before": 1}
            await tally.transact(adding("after"))
            assert await entries(tally) == {"after": 1, "before": 1}

    asyncio.run(scenario())


def test_every_write_has_reached_the_disk_before_its_caller_is_told(tmp_path: Path, disk: FaultyDisk) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:

            async def caller(number: int) -> None:
                for serial in range(20):
                    await tally.transact(adding(f"{number}-{serial}"))
                    assert disk.unsynced == set()

            await asyncio.gather(*(caller(number) for number in range(3)))

    asyncio.run(scenario())


def test_after_a_failed_fsync_nothing_is_written_until_a_restart(tmp_path: Path, disk: FaultyDisk) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            await tally.transact(adding("before"))
            disk.fault = FSYNC_FAILED
            with pytest.raises(Poisoned, match="restart the process"):
                await tally.transact(adding("unknown"))
            disk.fault = None
            outcomes = await asyncio.gather(
                *(tally.transact(adding(f"e{n}")) for n in range(3)), return_exceptions=True
            )

            assert kinds(outcomes) == ["Poisoned"] * 3
            assert list(await entries(tally)) == ["before"]

    asyncio.run(scenario())


def test_a_failed_fsync_while_the_log_is_copied_back_also_stops_all_writing(tmp_path: Path, disk: FaultyDisk) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db", inline=True) as tally:
            await tally.transact(adding("before"))
            disk.fault = FSYNC_FAILED
            tally._writer._committer.log.checkpoint_at = 0
            tally._writer._serve_until_empty()
            disk.fault = None

            with pytest.raises(Poisoned):
                await tally.transact(adding("after"))

    asyncio.run(scenario())


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace makes the kernel's own fdatasync fail")
def test_an_fdatasync_that_the_kernel_fails_is_never_tried_again(tmp_path: Path) -> None:
    inject = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync")
    child = children.start(
        "fail_fsync", tmp_path / "t.db", wrapped_by=(*inject, "-e", "inject=fdatasync:error=EIO:when=8")
    )
    said = children.finish(child).splitlines()

    acknowledged = [line.split()[1] for line in said if line.startswith("ok")]
    refused = [line for line in said if line.startswith("refused")]
    assert len(acknowledged) + len(refused) == 12
    assert len(refused) >= 2
    assert all("fsync failed" in line for line in refused)
    assert said[-1].split()[-1].split(",") == acknowledged


def test_a_full_file_system_refuses_and_resumes_when_space_returns(tmp_path: Path) -> None:
    mounted = tmp_path / "small"
    mounted.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", mounted], check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        asyncio.run(_fill_and_free(mounted))
    finally:
        subprocess.run(["umount", mounted], check=True)


async def _fill_and_free(mounted: Path) -> None:
    async with tally_at(mounted / "t.db") as tally:
        ballast = mounted / "ballast"
        ballast.write_bytes(b"x" * 150_000)
        acknowledged: list[str] = []

        async def write_on() -> None:
            for number in range(10_000):
                acknowledged.append(await tally.transact(adding(f"{number:05}-{'x' * 2_000}")))  # noqa: PERF401

        with pytest.raises(Unavailable, match="the disk is full"):
            await write_on()
        assert list(await entries(tally)) == acknowledged
        ballast.unlink()

        acknowledged.append(await tally.transact(adding("z-after")))
        assert list(await entries(tally)) == acknowledged


def test_a_missing_folder_a_folder_and_a_stranger_file_are_named_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "letter.txt").write_text("Dear reader, " * 500)

    with pytest.raises(Unavailable, match=r"missing/t\.db: the folder .*missing does not exist; create it"):
        open_tally(tmp_path / "missing" / "t.db")
    with pytest.raises(Unavailable, match="folder: this is a folder; name a file in it"):
        open_tally(tmp_path / "folder")
    with pytest.raises(Unavailable, match=r"letter\.txt: it is not a SQLite database"):
        open_tally(tmp_path / "letter.txt")
    with pytest.raises(Unavailable, match="may not be written; make the file and its folder writable"):
        open_tally("/sys/t.db")


def test_a_damaged_database_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "t.db"

    async def fill() -> None:
        async with tally_at(path) as tally:
            for n in range(50):
                await tally.transact(adding(f"{n}-{'x' * 500}"))

    asyncio.run(fill())
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(os.urandom(path.stat().st_size - 4_096))

    async def use() -> None:
        async with tally_at(path) as tally:
            await entries(tally)

    with pytest.raises(Unavailable, match="damaged; stop all processes and restore a backup"):
        asyncio.run(use())


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_a_file_that_was_deleted_or_replaced_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, replaced: bool
) -> None:
    monkeypatch.setattr(batch, "FILE_LOOK_MICROS", 0)
    path = tmp_path / "t.db"

    async def scenario() -> None:
        async with tally_at(path) as tally:
            await tally.transact(adding("before"))
            path.rename(tmp_path / "moved.db")
            if replaced:
                shutil.copy(tmp_path / "moved.db", path)
            outcomes = await asyncio.gather(
                tally.transact(adding("a")), tally.transact(adding("b")), return_exceptions=True
            )
            assert kinds(outcomes) == ["Unavailable"] * 2
            assert all("t.db: the file was deleted or replaced; put it back" in str(each) for each in outcomes)

            (tmp_path / "moved.db").rename(path)

            await tally.transact(adding("after"))
            assert list(await entries(tally)) == ["after", "before"]

    asyncio.run(scenario())


def test_a_closed_storage_says_so_and_closing_twice_is_fine(tmp_path: Path) -> None:
    async def scenario() -> None:
        for path in (tmp_path / "t.db", ":memory:"):
            async with tally_at(path) as tally:
                await tally.transact(adding("a"))
                await tally.close()
                await tally.close()

                with pytest.raises(Unavailable, match="closed; open it again"):
                    await tally.transact(adding("b"))
                with pytest.raises(Unavailable, match="closed; open it again"):
                    await entries(tally)

    asyncio.run(scenario())


def test_closing_finishes_what_was_submitted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            callers = [asyncio.ensure_future(tally.transact(adding(f"e{n}"))) for n in range(5)]
            await asyncio.sleep(0)
            await tally.close()

            assert await asyncio.gather(*callers) == [f"e{n}" for n in range(5)]

    asyncio.run(scenario())


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            await tally.transact(adding("a"))
            listener = tally.wakeups.listen()

            modes = {entry.name: entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir()}  # noqa: ASYNC240
            assert {mode & 0o077 for mode in modes.values()} == {0}
            assert {"t.db", "t.db-wal", "t.db-shm", "t.db-lock", "t.db-wake"} == set(modes)
            listener.close()

    asyncio.run(scenario())


def test_a_signal_that_interrupts_a_work_reaches_its_thread_and_leaves_the_store_usable(
    tmp_path: Path,
) -> None:
    async def interrupted(tx: Any) -> None:
        await tx.fetch("add_entry", id="half", amount=1)
        signal.raise_signal(signal.SIGUSR1)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            with pytest.raises(KeyboardInterrupt):
                await tally.transact(interrupted)
            await tally.transact(adding("after"))

            assert list(await entries(tally)) == ["after"]

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        asyncio.run(scenario())
    finally:
        signal.signal(signal.SIGUSR1, before)
