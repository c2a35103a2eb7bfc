"""What runs said, as a store keeps it."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.ids import JobId
from duly.domain.logs import Artifact, LogLine, Progress


class LogStore(Protocol):
    """Kept as long as the job it is about. What is said of a job that is not there is not kept."""

    async def add(
        self, lines: Sequence[LogLine], progress: Sequence[Progress] = (), artifacts: Sequence[Artifact] = ()
    ) -> None:
        """Adds what is not there yet, by job and number, or by job and name; of progress the newest stands."""

    async def lines(self, job_id: JobId, *, after: int, most: int) -> list[LogLine]:
        """Lines with a greater number, in order."""

    async def progress(self, job_id: JobId) -> Progress | None: ...

    async def artifacts(self, job_id: JobId) -> list[Artifact]:
        """By name."""
