"""The `duly` command as a person runs it: a process of its own, in an empty folder."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from duly.storage.sqlite.storage import SqliteStorage


def duly(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "duly", *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def database_at(path: Path) -> None:
    async def scenario() -> None:
        await (await SqliteStorage.open(path)).close()

    asyncio.run(scenario())


@pytest.mark.req("CRON-02")
@pytest.mark.req("DEC-003")
def test_cron_says_what_it_means_and_when_it_fires(tmp_path: Path) -> None:
    said = duly("cron", "0 9 * * MON-FRI", "--tz", "Europe/Berlin", "--count", "3", cwd=tmp_path)

    words, *fires = said.stdout.splitlines()
    assert words == "At 09:00 on Monday through Friday, Europe/Berlin"
    assert len(fires) == 3
    assert all(" 09:00:00 +0" in fire for fire in fires)


@pytest.mark.req("CRON-02")
def test_cron_notes_the_clock_changes_of_the_coming_year(tmp_path: Path) -> None:
    said = duly("cron", "30 2 * * *", "--tz", "Europe/Berlin", "--count", "1", cwd=tmp_path)

    _, _, *notes = said.stdout.splitlines()
    assert any("the clock goes forward from 02:00 to 03:00" in note for note in notes)


@pytest.mark.req("CRON-02", error=True)
@pytest.mark.req("DEC-003", error=True)
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["0 9 * * MONN"], "day of week, position 8"),
        (["0 9 * * *", "--tz", "Mars/Olympus"], "tz"),
        (["0 9 * * *", "--count", "0"], "--count"),
    ],
)
def test_a_mistake_is_named_and_ends_with_2(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    said = duly("cron", *arguments, cwd=tmp_path)

    assert said.returncode == 2
    assert said.stderr.startswith(f"duly: {complaint}")
    assert said.stderr.count("\n") == 1
    assert said.stdout == ""


def test_cron_lists_fires_that_lie_further_apart_than_notes_reach(tmp_path: Path) -> None:
    said = duly("cron", "0 0 29 2 *", "--tz", "Europe/Berlin", "--count", "40", cwd=tmp_path)

    assert said.returncode == 0, said.stderr
    assert len(said.stdout.splitlines()) == 41


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "duly", "cron", "* * * * *", "--count", "10000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()

    assert (process.returncode, complaint) == (0, "")


@pytest.mark.req("DEC-002")
def test_backup_copies_the_database(tmp_path: Path) -> None:
    database_at(tmp_path / "letters.db")

    said = duly("backup", "copy.db", cwd=tmp_path, DULY_DATABASE_URL="letters.db")

    assert said.returncode == 0, said.stderr
    copy = apsw.Connection(str(tmp_path / "copy.db"))
    assert copy.execute("SELECT count(*) FROM pools").fetchall() == [(5,)]


@pytest.mark.req("DEC-002", error=True)
@pytest.mark.parametrize(("url", "code"), [("nowhere.db", 3), ("postgresql://nobody@nowhere.invalid/none", 2)])
def test_backup_makes_no_database_in_order_to_copy_it(tmp_path: Path, url: str, code: int) -> None:
    said = duly("backup", "copy.db", cwd=tmp_path, DULY_DATABASE_URL=url)

    assert said.returncode == code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("DEC-002", error=True)
def test_backup_overwrites_nothing(tmp_path: Path) -> None:
    database_at(tmp_path / "duly.db")
    (tmp_path / "copy.db").write_text("precious")

    said = duly("backup", "copy.db", cwd=tmp_path)

    assert said.returncode == 4
    assert "copy.db" in said.stderr
    assert (tmp_path / "copy.db").read_text() == "precious"


@pytest.mark.req("CON-001", error=True)
def test_a_database_that_is_none_is_refused_with_the_way_out(tmp_path: Path) -> None:
    said = duly("backup", "copy.db", cwd=tmp_path, DULY_DATABASE_URL="mysql://here")

    assert said.returncode == 2
    assert "DULY_DATABASE_URL" in said.stderr
    assert "postgresql://" in said.stderr
