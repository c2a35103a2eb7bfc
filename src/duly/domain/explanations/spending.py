"""What a run of a graph was allowed, held and spent, from its grant, its holds and its receipts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from duly.domain.amounts import written_amount
from duly.domain.billing import Account, Hold, HoldState, Receipt
from duly.domain.executions import Execution, ExecutionStatus
from duly.domain.grants import Grant
from duly.domain.instants import Instant, written

_STATES = {HoldState.SETTLED: "settled", HoldState.LAPSED: "settled, as its lease had run out,"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Of one run: `receipts` are its first ones, `receipt_count` is how many there are."""

    grant: Grant
    account: Account
    execution: Execution | None = None
    holds: Sequence[Hold] = ()
    receipts: Sequence[Receipt] = ()
    receipt_count: int = 0


def spending_in_words(spending: Spending, *, now: Instant) -> Iterator[str]:
    yield _grant(spending, now)
    if (execution := spending.execution) is None:
        yield "It has not been executed, so nothing was held and nothing spent."
        return
    yield _execution(execution)
    currency = spending.account.currency
    if not spending.holds:
        yield "Nothing was held for it."
    for hold in spending.holds:
        yield _hold(hold, currency)
    for receipt in spending.receipts:
        yield _receipt(receipt, currency)
    if (more := spending.receipt_count - len(spending.receipts)) > 0:
        yield f"There are {more} receipts more; `duly account statement {spending.account.id}` shows them."


def _grant(spending: Spending, now: Instant) -> str:
    grant, account = spending.grant, spending.account
    acts = f"It acts under {grant.id} of {grant.user_id} ({', '.join(grant.scopes)})"
    pays = f"at the cost of {account.id} ({account.name}, of {account.owner})"
    if grant.revoked_at is not None:
        return f"{acts}, {pays}; that grant was revoked at {written(grant.revoked_at)}."
    if grant.expires_at is not None:
        verb = "expired" if grant.expires_at <= now else "expires"
        return f"{acts}, {pays}; that grant {verb} at {written(grant.expires_at)}."
    return f"{acts}, {pays}."


def _execution(execution: Execution) -> str:
    began = (
        f"Its execution is {execution.run_id} of graph {execution.graph_id}, begun at {written(execution.created_at)}"
    )
    match execution.status:
        case ExecutionStatus.WAITING if execution.called_back_by is not None:
            return f"{began}; it waits for its executor to call back, until {written(execution.called_back_by)}."
        case ExecutionStatus.WAITING:
            return f"{began}; it waits for a person ({execution.waits_for})."
        case ExecutionStatus.RUNNING:
            return f"{began}; attempt {execution.attempt} runs."
        case ExecutionStatus.DONE if execution.ok:
            return f"{began}; attempt {execution.attempt} succeeded."
        case _:
            said = f": {execution.error_message}" if execution.error_message else ""
            return f"{began}; attempt {execution.attempt} failed with {execution.error_code}{said}."


def _hold(hold: Hold, currency: str) -> str:
    held = f"{written_amount(hold.amount)} {currency}"
    made = f"{held} was held for attempt {hold.attempt} at {written(hold.held_at)}"
    unmetered = f"; {hold.unmetered} of its receipts have no figures, and are not billed" if hold.unmetered else ""
    if hold.ended_at is None:
        return f"{made} and is held still; {written_amount(hold.spent)} is spent so far{unmetered}."
    if hold.state is HoldState.RELEASED:
        return f"{made}, and all of it came back at {written(hold.ended_at)}{unmetered}."
    back = max(hold.amount - hold.spent, 0)
    charged = f"{written_amount(hold.spent)} was charged and {written_amount(back)} came back"
    return f"{made}, and {_STATES[hold.state]} at {written(hold.ended_at)}: {charged}{unmetered}."


def _receipt(receipt: Receipt, currency: str) -> str:
    usage = receipt.usage
    used = (
        "" if usage is None else f" for {usage.input_tokens} tokens in and {usage.output_tokens} out of {usage.model}"
    )
    if receipt.amount is None:
        return f"Receipt {receipt.source_reference}: unmetered{used}; nobody knows what it costs."
    price = f", at {receipt.price}" if receipt.price else ""
    return f"Receipt {receipt.source_reference}: {written_amount(receipt.amount)} {currency}{used}{price}."
