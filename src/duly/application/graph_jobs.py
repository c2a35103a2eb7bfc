"""What a job that has a graph executed may ask for: at whose cost, and under which key."""

from typing import NamedTuple

from duly.application.owners import owner_of_job
from duly.domain.executions import execution_key_of_job
from duly.domain.ids import Owner
from duly.domain.sessions import ClaimedJob
from duly.ports.storage import Storage, Transaction


class Standing(NamedTuple):
    """`owner` is none for what an operator put, who may name any grant and any key."""

    owner: Owner | None
    key: str


async def standing_of(storage: Storage, job: ClaimedJob) -> Standing:
    """Its owner writes its params, so they cannot make it somebody else's: not by a grant, and not by a key.

    A slot has its own key, a launch that of its owner, and whatever else an owner puts that of its chain.
    """

    async def work(tx: Transaction) -> Standing:
        owner = await owner_of_job(tx, job)
        named = execution_key_of_job(job.payload, job.key, job.chain)
        if owner is None:
            return Standing(None, named)
        if job.ledger_run is not None:
            return Standing(owner, str(job.key or job.chain))
        launch = await tx.workflows.launch(named)
        is_own = launch is not None and launch.owner == owner
        return Standing(owner, named if is_own else str(job.chain))

    return await storage.read(work)
