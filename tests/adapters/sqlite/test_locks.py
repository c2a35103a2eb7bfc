"""SQLite's own locks, which a process loses on a file as soon as it closes any descriptor of that file."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.sqlite.tally import adding, tally_at

pytestmark = pytest.mark.store("sqlite")

LOOK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(",".join(id for (id,) in connection.execute("SELECT id FROM entries ORDER BY id")))
connection.close()
"""


def _look(path: Path) -> str:
    """What another program sees. It would remove the log on closing if it took itself for the last user."""
    asked = [sys.executable, "-c", LOOK, str(path)]
    return subprocess.run(asked, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


@pytest.mark.req("DEC-002")
def test_another_program_does_not_remove_the_log_under_a_store_that_was_opened_twice(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    log = tmp_path / "t.db-wal"

    async def scenario() -> None:
        async with tally_at(path) as tally:
            await tally.transact(adding("a"))
            async with tally_at(path):
                before = log.stat().st_ino
                assert await asyncio.to_thread(_look, path) == "a"

                assert log.exists()
                assert log.stat().st_ino == before
                await tally.transact(adding("b"))
                assert await asyncio.to_thread(_look, path) == "a,b"

    asyncio.run(scenario())
    assert _look(path) == "a,b"
