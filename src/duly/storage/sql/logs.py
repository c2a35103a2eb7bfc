"""What runs said, in SQL."""

from collections.abc import Sequence

from duly.domain.ids import JobId
from duly.domain.logs import Artifact, LogLevel, LogLine, Progress
from duly.storage.executor import Executor


class SqlLogs:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(
        self, lines: Sequence[LogLine], progress: Sequence[Progress] = (), artifacts: Sequence[Artifact] = ()
    ) -> None:
        await self._x.each("insert_log_lines", [(*line[:3], line.level.value, line.text) for line in lines])
        await self._x.each("save_progress", [tuple(said) for said in progress])
        await self._x.each("insert_artifacts", [tuple(artifact) for artifact in artifacts])

    async def lines(self, job_id: JobId, *, after: int, most: int) -> list[LogLine]:
        rows = await self._x.fetch("log_lines_after", job_id=job_id, seq=after, most=most)
        return [LogLine(job, seq, at, LogLevel(level), text) for job, seq, at, level, text in rows]

    async def progress(self, job_id: JobId) -> Progress | None:
        for row in await self._x.fetch("progress_of", job_id=job_id):
            return Progress(*row)
        return None

    async def artifacts(self, job_id: JobId) -> list[Artifact]:
        return [Artifact(*row) for row in await self._x.fetch("artifacts_of", job_id=job_id)]
