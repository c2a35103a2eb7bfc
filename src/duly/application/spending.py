"""Finds what a run of a graph was allowed and has spent, for whoever asks why: reads, and writes nothing."""

from collections.abc import Sequence

from duly.application.accounts import account_in
from duly.domain.executions import Execution
from duly.domain.explanations import Spending
from duly.domain.graph_targets import grant_of
from duly.domain.ids import GrantId
from duly.domain.runs import Run
from duly.domain.schedules import Revision
from duly.ports.storage import Transaction

MOST_RECEIPTS = 20


async def spending_in(tx: Transaction, run: Run, revisions: Sequence[Revision]) -> Spending | None:
    """None for what is no graph. Before it is executed, its revision says under which grant it will be."""
    execution = None if run.run_id is None else await tx.executions.by_run(run.run_id)
    planned = next((grant_of(each.target) for each in revisions if each.number == run.revision), None)
    return await spending_of(tx, planned if execution is None else execution.grant_id, execution)


async def spending_of(tx: Transaction, grant_id: str | None, execution: Execution | None) -> Spending | None:
    """None if nobody knows under which grant."""
    grant = None if grant_id is None else await tx.grants.get(GrantId(grant_id))
    if grant is None:
        return None
    account = await account_in(tx, grant.account_id, None)
    if execution is None:
        return Spending(grant=grant, account=account)
    receipts = await tx.holds.receipts_of_run(execution.run_id, most=MOST_RECEIPTS)
    return Spending(
        grant=grant,
        account=account,
        execution=execution,
        holds=await tx.holds.of_run(execution.run_id),
        receipts=receipts,
        receipt_count=await tx.holds.count_receipts(execution.run_id),
    )
