"""What runs say: kept while they go on, read by whoever follows them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from duly.domain.ids import JobId
from duly.domain.jobs import UnknownJob
from duly.domain.logs import Artifact, LogLine, Progress
from duly.domain.texts import whole_number_of
from duly.ports.storage import Storage, Transaction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Logs:
    storage: Storage

    async def keep(
        self, lines: Sequence[LogLine], progress: Sequence[Progress] = (), artifacts: Sequence[Artifact] = ()
    ) -> None:
        """Keeping the same again changes nothing."""

        async def work(tx: Transaction) -> None:
            await tx.logs.add(lines, progress, artifacts)

        await self.storage.transact(work)

    async def lines(self, job_id: JobId, *, after: int = 0, most: int = 1_000) -> list[LogLine]:
        """The lines of a job that follow one, in order: to follow it, ask again with the last `seq` answered."""
        whole_number_of(after, field="after", least=0, most=2**62)
        whole_number_of(most, field="most", least=1, most=10_000)
        return await self._of(job_id, lambda tx: tx.logs.lines(job_id, after=after, most=most))

    async def progress(self, job_id: JobId) -> Progress | None:
        """How far a job has come, if it ever said so."""
        return await self._of(job_id, lambda tx: tx.logs.progress(job_id))

    async def artifacts(self, job_id: JobId) -> list[Artifact]:
        return await self._of(job_id, lambda tx: tx.logs.artifacts(job_id))

    async def _of(self, job_id: JobId, read: Callable[[Transaction], Awaitable[T]]) -> T:
        async def work(tx: Transaction) -> T:
            found = await read(tx)
            if not found and await tx.jobs.get(job_id) is None:
                raise UnknownJob(job_id)
            return found

        return await self.storage.read(work)
