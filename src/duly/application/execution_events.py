"""What the graph of a run has told, for whoever owns the run: read a page at a time, from behind the last one seen."""

from collections.abc import Sequence
from dataclasses import dataclass

from duly.application.job_facts import execution_of
from duly.domain.executions import Execution, ExecutionEvent
from duly.domain.ids import RunId
from duly.domain.runs import Run, UnknownRun
from duly.domain.texts import text_of, whole_number_of
from duly.ports.storage import Storage, Transaction

MOST_READ = 1_000
_LAST = 2**62


@dataclass(frozen=True, slots=True)
class ExecutionEvents:
    storage: Storage

    async def of_run(
        self, run_id: str, *, owner: str | None, after: int = 0, most: int = MOST_READ
    ) -> Sequence[ExecutionEvent]:
        """In order through all attempts, from behind `after` on; none, unless the run executes a graph."""
        whole_number_of(most, field="most", least=1, most=MOST_READ)
        whole_number_of(after, field="after", least=0, most=_LAST)

        async def work(tx: Transaction) -> Sequence[ExecutionEvent]:
            execution = await _execution_of(tx, await _known(tx, run_id, owner))
            return [] if execution is None else await tx.executions.events(execution.run_id, after=after, most=most)

        return await self.storage.read(work)


async def _known(tx: Transaction, run_id: str, owner: str | None) -> Run:
    run = await tx.ledger.get(RunId(text_of(run_id, field="id")))
    if run is None or owner not in (None, run.owner):
        raise UnknownRun(RunId(run_id))
    return run


async def _execution_of(tx: Transaction, run: Run) -> Execution | None:
    """While it runs the ledger does not name it yet, so it is found by its key, which its job carries.

    A job can name any key: what somebody else's grant executed is not its owner's to see.
    """
    if run.run_id is not None:
        found = await tx.executions.by_run(run.run_id)
    else:
        job = None if run.job_id is None else await tx.jobs.get(run.job_id)
        found = None if job is None else await execution_of(tx, job)
    grant = None if found is None else await tx.grants.get(found.grant_id)  # type: ignore[arg-type]
    return found if grant is not None and grant.user_id == run.owner else None
