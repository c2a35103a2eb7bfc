"""A worker that has nothing to do, on a file that only its own heart writes to."""

import asyncio
from pathlib import Path

import pytest

from duly.bootstrap import Queue
from duly.domain.ids import PoolName
from duly.settings import Settings


@pytest.mark.store("sqlite")
def test_a_beat_is_not_answered_by_another_beat(tmp_path: Path) -> None:
    async def scenario() -> set[int]:
        queue = await Queue.open(Settings(database_url=str(tmp_path / "idle.db")))
        worker = queue.worker(handlers={}, pools={PoolName("default"): 1}, name="idle")
        working = asyncio.create_task(worker.run())
        beats: set[int] = set()
        for _ in range(60):  # six looks at what others may have changed
            await asyncio.sleep(0.1)
            beats.update(_beaten_at(tmp_path))
        worker.stop()
        await working
        await queue.close()
        return beats

    # As it opens, once it works, and when a beat is due; each answered by another would be one for each look.
    assert 1 <= len(asyncio.run(scenario())) <= 3


def _beaten_at(folder: Path) -> list[int]:
    import apsw

    return [seen_at for (seen_at,) in apsw.Connection(str(folder / "idle.db")).execute("SELECT seen_at FROM sessions")]
