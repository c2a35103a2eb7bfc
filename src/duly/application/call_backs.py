"""Ends executions that wait for an executor elsewhere: by what it says, or at their deadline."""

from duly.domain.executions import Ended, Execution, ExecutionStatus, GraphResult, WaitsFor, ended_with, failed
from duly.domain.instants import Instant, written
from duly.domain.payloads import value_of
from duly.domain.workflows import CallBack, CalledBack
from duly.ports.storage import Transaction

NO_CALL_BACK = "no_call_back"


def ended_by(said: CallBack | None) -> Ended | None:
    """None while it has not ended, as far as anybody said."""
    if said is None or said.status is CalledBack.STARTED:
        return None
    value = None if said.value is None else value_of(said.value)
    if said.status is CalledBack.FAILED:
        return failed("executor_failed", f"the executor says: {value}")
    return ended_with(GraphResult(output={"outputs": value}))


def never_called_back(by: Instant) -> Ended:
    return failed(NO_CALL_BACK, f"the executor said nothing until {written(by)}")


async def end_called_back(tx: Transaction, waiting: Execution, *, now: Instant) -> Execution:
    """Of an execution that the caller has locked, and that waits: over, if its executor has said how it ended."""
    ended = ended_by(await tx.workflows.called_back(waiting.run_id))
    return waiting if ended is None else await _ended(tx, waiting, ended, now)


async def end_overdue(tx: Transaction, waiting: Execution, *, now: Instant) -> Execution:
    """The same for one that nobody has called back about in time."""
    by = waiting.called_back_by
    return waiting if by is None or now < by else await _ended(tx, waiting, never_called_back(by), now)


def waits_for_call_back(execution: Execution) -> bool:
    return execution.status is ExecutionStatus.WAITING and execution.waits_for is WaitsFor.CALL_BACK


async def _ended(tx: Transaction, waiting: Execution, ended: Ended, now: Instant) -> Execution:
    await wake_waiting(tx, waiting, now=now)
    return await tx.executions.end(waiting.claim, ended, now=now) or waiting


async def wake_waiting(tx: Transaction, execution: Execution, *, now: Instant) -> None:
    if execution.waiting_job is not None:
        await tx.reviews.wake(execution.waiting_job, now)
