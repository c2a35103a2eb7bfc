"""Works out what jobs that execute graphs will hold, by the rule by which money is held when they run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from duly.domain.amounts import NOTHING, UNIT, Amount, parse_amount
from duly.domain.errors import InvalidInput
from duly.domain.estimates import Estimate, Past, Purse
from duly.domain.executions import DEFAULT_MODEL, GRAPH_RUN
from duly.domain.ids import AccountId, GrantId, ScheduleId
from duly.domain.payloads import Payload, value_of
from duly.ports.prices import Prices
from duly.ports.storage import Transaction

DEFAULT_HOLD = Amount(UNIT)
"""What is held for a run that names a paid model, and not what it may cost."""

MOST_PAST = 200
MOST_SCHEDULES = 20

Work = tuple[str, Payload]
"""A kind, and its payload."""


def hold_for(max_cost: int | None, model: str | None, prices: Prices | None) -> Amount:
    """What is held for a run before it begins; `model` is none if the graph has its own."""
    if max_cost is not None:
        return Amount(max_cost)
    is_paid = model is not None and (prices is None or not prices.is_free(model))
    return DEFAULT_HOLD if is_paid else NOTHING


async def estimate_in(
    tx: Transaction,
    works: Iterable[Work],
    prices: Prices | None,
    *,
    owner: str | None,
    settled: int = 0,
    schedules: Sequence[ScheduleId] = (),
) -> Estimate:
    """Of jobs that are about to be put. What no grant of its owner's covers executes nothing, and shows no account.

    `settled` more execute nothing either, because their outcome is known already.
    """
    runs, unbounded = settled, 0
    held: Counter[AccountId] = Counter()
    payers: Counter[AccountId] = Counter()
    accounts: dict[str, AccountId | None] = {}
    for kind, payload in works:
        runs += 1
        asked = _asked(kind, payload)
        account = None if asked is None else await _account(tx, asked, owner, accounts)
        if asked is None or account is None:
            continue
        max_cost, model = asked["max_cost"], asked["model"]
        amount = hold_for(max_cost, model, prices)
        if amount or max_cost is not None:
            held[account] += amount
            payers[account] += 1
        elif model is None:
            unbounded += 1
    purses = tuple([await _purse(tx, account, held[account], count) for account, count in sorted(payers.items())])
    past = await _past(tx, schedules) if purses or unbounded else ()
    return Estimate(runs=runs, unbounded=unbounded, purses=purses, past=past)


def _asked(kind: str, payload: Payload) -> Mapping[str, Any] | None:
    """None for what is no graph, or says of itself what nobody could execute."""
    if kind != GRAPH_RUN:
        return None
    params: Mapping[str, Any] = value_of(payload)
    given, max_cost = params.get("input") or {}, params.get("max_cost")
    model = given.get("model", DEFAULT_MODEL) if isinstance(given, Mapping) else DEFAULT_MODEL
    try:
        amount = None if max_cost is None else parse_amount(max_cost, field="max_cost")
    except InvalidInput:
        return None
    named = model if isinstance(model, str) and model != DEFAULT_MODEL else None
    return {"grant_id": params.get("grant_id"), "max_cost": amount, "model": named}


async def _account(
    tx: Transaction, asked: Mapping[str, Any], owner: str | None, known: dict[str, AccountId | None]
) -> AccountId | None:
    grant_id = str(asked["grant_id"])
    if grant_id not in known:
        grant = await tx.grants.get(GrantId(grant_id))
        is_good = grant is not None and grant.revoked_at is None and owner in (None, grant.user_id)
        known[grant_id] = grant.account_id if grant is not None and is_good else None
    return known[grant_id]


async def _purse(tx: Transaction, account_id: AccountId, held: int, runs: int) -> Purse:
    account = await tx.accounts.get(account_id)
    available, currency = (0, "") if account is None else (account.balance.available, account.currency)
    return Purse(account_id=account_id, currency=currency, runs=runs, held=Amount(held), available=available)


async def _past(tx: Transaction, schedules: Sequence[ScheduleId]) -> tuple[Past, ...]:
    """Of all of them together, by currency."""
    found: dict[str, Past] = {}
    for schedule_id in list(dict.fromkeys(schedules))[:MOST_SCHEDULES]:
        for each in await tx.estimates.past_of(schedule_id, most=MOST_PAST):
            before = found.get(each.currency, Past(runs=0, spent=0, unmetered=0, currency=each.currency))
            found[each.currency] = Past(
                runs=before.runs + each.runs,
                spent=before.spent + each.spent,
                unmetered=before.unmetered + each.unmetered,
                currency=each.currency,
            )
    return tuple(found.values())
