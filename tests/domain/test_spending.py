"""What a run was allowed, held and spent, in sentences."""

from dataclasses import replace
from typing import Any

import pytest

from duly.domain.amounts import UNIT, Amount
from duly.domain.billing import Account, Hold, HoldState, Receipt, Usage
from duly.domain.executions import Execution, ExecutionStatus, WaitsFor
from duly.domain.explanations import RunFacts, Spending, explain_run
from duly.domain.explanations.spending import spending_in_words
from duly.domain.grants import Grant
from duly.domain.ids import AccountId, GrantId, Owner, RunId, ScheduleId, VirtualKeyId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.payloads import EMPTY
from duly.domain.runs import Run, RunKind, RunStatus

NOW = Instant(1_800_000_000 * SECOND)
LATER = Instant(NOW + 60 * SECOND)
ACCOUNT = Account(id=AccountId("acct_1"), owner=Owner("ann"), name="main", currency="USD", created_at=NOW)
GRANT = Grant(
    id=GrantId("grant_1"),
    user_id=Owner("ann"),
    account_id=ACCOUNT.id,
    scopes=("graph:execute:python:news",),
    created_at=NOW,
)
ACTS = "It acts under grant_1 of ann (graph:execute:python:news), at the cost of acct_1 (main, of ann)"
BEGAN = "Its execution is exe_1 of graph python:news, begun at 2027-01-15T08:00:00Z"


def execution(**rest: Any) -> Execution:
    return Execution(
        key="k",
        request_hash="h",
        request=EMPTY,
        graph_id="python:news",
        grant_id="grant_1",
        run_id="exe_1",
        trace_id="t",
        token=1,
        era="e",
        expires_at=Micros(0),
        created_at=NOW,
        **{"status": ExecutionStatus.DONE, "ok": True, **rest},
    )


def hold(state: HoldState = HoldState.SETTLED, **rest: Any) -> Hold:
    return Hold(
        run_id="exe_1",
        attempt=1,
        account_id=ACCOUNT.id,
        virtual_key_id=VirtualKeyId("vkey_1"),
        amount=Amount(UNIT // 2),
        state=state,
        era="e",
        expires_at=Micros(0),
        held_at=NOW,
        counted_at=NOW,
        ended_at=None if state is HoldState.HELD else LATER,
        **rest,
    )


def receipt(amount: int | None, unit: str = "u1", usage: Usage | None = None) -> Receipt:
    return Receipt(
        id=f"rcpt_{unit}",
        account_id=ACCOUNT.id,
        virtual_key_id=VirtualKeyId("vkey_1"),
        run_id="exe_1",
        attempt=1,
        unit=unit,
        usage=usage,
        amount=None if amount is None else Amount(amount),
        created_at=NOW,
        price=None if usage is None else "2.50 in, 10.00 out per million tokens of openai:gpt-4o",
    )


def said(**facts: Any) -> list[str]:
    return list(spending_in_words(Spending(grant=GRANT, account=ACCOUNT, **facts), now=LATER))


@pytest.mark.req("OWN-02")
def test_grant_hold_price_and_receipts_are_named() -> None:
    usage = Usage(model="gpt-4o", input_tokens=1_000, output_tokens=100)

    assert said(
        execution=execution(),
        holds=[hold(spent=120_000, unmetered=1)],
        receipts=[receipt(120_000, usage=usage), receipt(None, "u2")],
        receipt_count=5,
    ) == [
        f"{ACTS}.",
        f"{BEGAN}; attempt 1 succeeded.",
        (
            "0.50 USD was held for attempt 1 at 2027-01-15T08:00:00Z, and settled at 2027-01-15T08:01:00Z: 0.12 was"
            " charged and 0.38 came back; 1 of its receipts have no figures, and are not billed."
        ),
        (
            "Receipt exe_1/1/u1: 0.12 USD for 1000 tokens in and 100 out of gpt-4o, at 2.50 in, 10.00 out per million"
            " tokens of openai:gpt-4o."
        ),
        "Receipt exe_1/1/u2: unmetered; nobody knows what it costs.",
        "There are 3 receipts more; `duly account statement acct_1` shows them.",
    ]


@pytest.mark.req("OWN-02")
@pytest.mark.parametrize(
    ("held", "ending"),
    [
        (hold(HoldState.HELD, spent=10_000), " and is held still; 0.01 is spent so far."),
        (hold(HoldState.RELEASED), ", and all of it came back at 2027-01-15T08:01:00Z."),
        (
            hold(HoldState.LAPSED),
            ", and settled, as its lease had run out, at 2027-01-15T08:01:00Z: 0.00 was charged and 0.50 came back.",
        ),
        (hold(spent=700_000), ", and settled at 2027-01-15T08:01:00Z: 0.70 was charged and 0.00 came back."),
    ],
)
def test_a_hold_says_what_became_of_it(held: Hold, ending: str) -> None:
    made = "0.50 USD was held for attempt 1 at 2027-01-15T08:00:00Z"

    assert said(execution=execution(), holds=[held])[2] == made + ending


@pytest.mark.req("OWN-02", error=True)
def test_what_was_refused_says_so() -> None:
    refused = execution(ok=False, error_code="over_budget", error_message="budget bud_1: too much")

    assert said(execution=refused)[1:] == [
        f"{BEGAN}; attempt 1 failed with over_budget: budget bud_1: too much.",
        "Nothing was held for it.",
    ]
    assert said()[1] == "It has not been executed, so nothing was held and nothing spent."


def test_an_execution_that_is_not_over_says_what_it_does() -> None:
    running = execution(status=ExecutionStatus.RUNNING, ok=None, attempt=2)
    waiting = execution(status=ExecutionStatus.WAITING, ok=None, waits_for="review")

    assert said(execution=running)[1] == f"{BEGAN}; attempt 2 runs."
    assert said(execution=waiting)[1] == f"{BEGAN}; it waits for a person (review)."
    called = replace(waiting, waits_for=WaitsFor.CALL_BACK, called_back_by=Instant(0))
    until = "1970-01-01T00:00:00Z"
    assert said(execution=called)[1] == f"{BEGAN}; it waits for its executor to call back, until {until}."


def test_a_grant_that_is_over_says_since_when() -> None:
    revoked = Spending(grant=replace(GRANT, revoked_at=NOW), account=ACCOUNT)
    expired = Spending(grant=replace(GRANT, expires_at=NOW), account=ACCOUNT)
    expiring = Spending(grant=replace(GRANT, expires_at=Instant(LATER + SECOND)), account=ACCOUNT)

    endings = [next(iter(spending_in_words(each, now=LATER))) for each in (revoked, expired, expiring)]

    assert endings == [
        f"{ACTS}; that grant was revoked at 2027-01-15T08:00:00Z.",
        f"{ACTS}; that grant expired at 2027-01-15T08:00:00Z.",
        f"{ACTS}; that grant expires at 2027-01-15T08:01:01Z.",
    ]


@pytest.mark.req("OWN-02")
def test_a_run_by_hand_speaks_for_itself() -> None:
    run = Run(
        id=RunId("run_1"),
        schedule_id=ScheduleId("news"),
        owner=Owner("ann"),
        revision=2,
        scheduled_for=NOW,
        fire_at=NOW,
        opened_at=NOW,
        kind=RunKind.MANUAL,
        own_key="manual:k",
        status=RunStatus.SKIPPED,
        detail="over_budget: budget bud_1: too much",
        completed_at=LATER,
    )

    explained = explain_run(RunFacts(run=run, now=LATER, spending=Spending(grant=GRANT, account=ACCOUNT)))

    assert (explained.answer, explained.schedule_id) == ("skipped", "news")
    assert explained.sentences == [
        "run_1 is a manual run of news for 2027-01-15T08:00:00Z, asked for by 'manual:k' (revision 2).",
        "It was opened at 2027-01-15T08:00:00Z, 0 ms after its time, as run_1.",
        "It was skipped at 2027-01-15T08:01:00Z: over_budget: budget bud_1: too much.",
        f"{ACTS}.",
        "It has not been executed, so nothing was held and nothing spent.",
    ]
