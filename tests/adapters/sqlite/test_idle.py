"""A worker that has nothing to do, on a file that only its own heart writes to."""

import asyncio
from pathlib import Path

import pytest

from duly.bootstrap import Queue
from duly.domain.ids import PoolName
from duly.settings import Settings


@pytest.mark.store("sqlite")
def test_a_beat_is_not_answered_by_another_beat(tmp_path: Path) -> None:
    async def scenario() -> tuple[int, int]:
        queue = await Queue.open(Settings(database_url=str(tmp_path / "idle.db")))
        worker = queue.worker(handlers={}, pools={PoolName("default"): 1}, name="idle")
        working = asyncio.create_task(worker.run())
        await asyncio.sleep(0.5)
        before = _beaten_at(tmp_path)
        await asyncio.sleep(2.5)  # two looks at what others may have changed
        after = _beaten_at(tmp_path)
        worker.stop()
        await working
        await queue.close()
        return before, after

    before, after = asyncio.run(scenario())

    assert before == after


def _beaten_at(folder: Path) -> int:
    import apsw

    seen_at = apsw.Connection(str(folder / "idle.db")).execute("SELECT seen_at FROM sessions").get
    assert isinstance(seen_at, int)
    return seen_at
