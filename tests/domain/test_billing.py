"""Balances, budgets, their windows, usage and free models, worked out by hand."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.amounts import Amount
from duly.domain.billing import (
    Account,
    Balance,
    Budget,
    BudgetScope,
    FreeModels,
    MoneyLaw,
    OnExceeded,
    OverBudget,
    Recorded,
    Usage,
    Window,
    balance_of,
    findings_of,
    free_models_of,
    unit_of,
)
from duly.domain.errors import InvalidInput
from duly.domain.ids import AccountId, BudgetId, Owner
from duly.domain.instants import SECOND, Instant, instant_of, moment_of

AMOUNTS = st.integers(0, 10**15)
# From 1990 to 2037.
SECONDS = st.integers(631_152_000, 2_114_380_800)


def instant(text: str) -> Instant:
    return instant_of(datetime.fromisoformat(text), field="text")


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_a_balance_adds_up_and_is_never_overdrawn(granted: int, held: int, used: int) -> None:
    balance = balance_of(granted=granted, held=held, used=used)

    assert balance.granted == balance.available + balance.held + balance.charged
    assert balance.charged + balance.overrun == used
    assert balance.available >= 0
    assert balance.overrun >= 0
    assert balance.available == 0 or balance.overrun == 0


def test_what_is_used_beyond_a_balance_is_overrun_until_a_credit_pays_it() -> None:
    assert balance_of(granted=10, held=0, used=13) == Balance(granted=10, available=0, held=0, charged=10, overrun=3)
    assert balance_of(granted=15, held=0, used=13) == Balance(granted=15, available=2, held=0, charged=13, overrun=0)


# Windows.


@pytest.mark.req("OWN-03")
@pytest.mark.parametrize(
    ("window", "now", "timezone", "start"),
    [
        (Window.DAY, "2026-11-17T10:00:00Z", "UTC", "2026-11-17T00:00:00Z"),
        (Window.DAY, "2026-03-29T12:00:00Z", "Europe/Berlin", "2026-03-28T23:00:00Z"),
        (Window.DAY, "2026-03-29T22:00:00Z", "Europe/Berlin", "2026-03-29T22:00:00Z"),
        (Window.DAY, "2026-10-25T22:59:59Z", "Europe/Berlin", "2026-10-24T22:00:00Z"),
        (Window.DAY, "2026-10-25T23:00:00Z", "Europe/Berlin", "2026-10-25T23:00:00Z"),
        # Its clock skips midnight: the day begins at one.
        (Window.DAY, "2026-04-24T10:00:00Z", "Africa/Cairo", "2026-04-23T22:00:00Z"),
        # Its clock shows an hour before midnight twice: the day before is longer, and is not entered again.
        (Window.DAY, "2026-10-29T21:30:00Z", "Africa/Cairo", "2026-10-28T21:00:00Z"),
        (Window.DAY, "2011-12-30T10:00:00Z", "Pacific/Apia", "2011-12-30T10:00:00Z"),
        (Window.WEEK, "2026-11-15T23:59:59Z", "UTC", "2026-11-09T00:00:00Z"),
        (Window.WEEK, "2026-11-16T00:00:00Z", "UTC", "2026-11-16T00:00:00Z"),
        (Window.MONTH, "2026-11-01T03:59:59Z", "America/New_York", "2026-10-01T04:00:00Z"),
        (Window.MONTH, "2026-11-01T04:00:00Z", "America/New_York", "2026-11-01T04:00:00Z"),
        (Window.MONTH, "2028-02-29T12:00:00Z", "UTC", "2028-02-01T00:00:00Z"),
        (Window.TOTAL, "2026-11-17T10:00:00Z", "Europe/Berlin", "1970-01-01T00:00:00Z"),
    ],
)
def test_a_window_begins_at_the_first_midnight_of_its_zone(window: Window, now: str, timezone: str, start: str) -> None:
    assert window.start(instant(now), timezone) == instant(start)


@pytest.mark.req("OWN-03")
@given(
    SECONDS,
    st.integers(0, 200_000),
    st.sampled_from(
        ["Europe/Berlin", "Africa/Cairo", "America/Havana", "Pacific/Apia", "Asia/Beirut", "America/St_Johns"]
    ),
    st.sampled_from([Window.DAY, Window.WEEK, Window.MONTH]),
)
def test_windows_follow_each_other_and_never_go_back(second: int, later_s: int, timezone: str, window: Window) -> None:
    now = Instant(second * SECOND)
    start = window.start(now, timezone)

    assert start <= now
    assert window.start(start, timezone) == start
    assert window.start(Instant(now + later_s * SECOND), timezone) >= start


@given(
    SECONDS,
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
)
def test_where_no_clock_changes_at_midnight_a_day_begins_at_midnight(second: int, timezone: str) -> None:
    moment = datetime.fromtimestamp(second, UTC)
    local = moment.astimezone(ZoneInfo(timezone))

    started = moment_of(Window.DAY.start(Instant(second * SECOND), timezone)).astimezone(ZoneInfo(timezone))

    assert (started.date(), started.hour, started.minute) == (local.date(), 0, 0)
    assert moment - started <= timedelta(hours=26)


# Budgets.


def budget(*, limit: int = 10, used: int = 0, window_start: str = "2026-11-17T00:00:00Z") -> Budget:
    return Budget(
        id=BudgetId("bud_1"),
        owner=Owner("ann"),
        scope=BudgetScope.ACCOUNT,
        scope_id="acct_1",
        window=Window.DAY,
        limit=Amount(limit),
        on_exceeded=OnExceeded.PAUSE,
        window_start=instant(window_start),
        used=used,
        created_at=Instant(0),
    )


@pytest.mark.req("OWN-03")
def test_a_budget_is_full_at_its_limit_and_empty_in_the_next_window() -> None:
    full = budget(used=4).holding(6)

    assert full.used == 10
    assert full.at(instant("2026-11-17T23:59:59Z")) == full
    assert full.at(instant("2026-11-18T00:00:00Z")).used == 0


@pytest.mark.req("OWN-03", error=True)
def test_beyond_a_budget_the_refusal_says_what_is_to_be_done() -> None:
    with pytest.raises(OverBudget, match=r"may spend 0\.00001 a day") as refused:
        budget(used=4).holding(7)

    assert refused.value.policy is OnExceeded.PAUSE
    assert (refused.value.used, refused.value.limit, refused.value.asked) == (4, 10, 7)


@pytest.mark.req("OWN-03", error=True)
def test_a_clock_that_is_set_back_reopens_no_window() -> None:
    full = budget(used=10)

    assert full.at(instant("2026-11-16T12:00:00Z")) == full
    with pytest.raises(OverBudget):
        full.at(instant("2026-11-16T12:00:00Z")).holding(1)


def test_what_costs_nothing_passes_a_budget_that_is_overdrawn() -> None:
    assert budget(used=12).holding(0).used == 12


# Usage and models.


@pytest.mark.parametrize("tokens", [-1, 10**9 + 1, 1.0, float("nan"), True, None, "7"])
@pytest.mark.req("GRAPH-05", error=True)
def test_tokens_that_nobody_can_have_used_are_refused(tokens: int) -> None:
    with pytest.raises(InvalidInput, match="output_tokens"):
        Usage(model="m", output_tokens=tokens)


def test_cached_tokens_are_among_those_of_the_input() -> None:
    with pytest.raises(InvalidInput, match="input_tokens"):
        Usage(model="m", input_tokens=5, cache_read_tokens=3, cache_write_tokens=3)


@pytest.mark.req("GRAPH-05")
def test_a_unit_cannot_be_mistaken_for_another_runs() -> None:
    with pytest.raises(InvalidInput, match="slash"):
        unit_of("1/call")


@pytest.mark.req("GRAPH-06")
def test_free_models_are_named_or_begin_alike() -> None:
    free = free_models_of(["ollama:*", "gpt-free"], field="DULY_FREE_MODELS")

    assert "ollama:llama3" in free
    assert "gpt-free" in free
    assert "gpt-free-2" not in free
    assert "anything" not in FreeModels()


@pytest.mark.parametrize("name", ["*", "a*b", "a\n", "x" * 201])
@pytest.mark.req("GRAPH-06", error=True)
def test_free_models_that_would_be_too_many_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="DULY_FREE_MODELS"):
        free_models_of([name], field="DULY_FREE_MODELS")


# The audit.


def test_an_account_that_says_what_its_records_say_has_no_findings() -> None:
    assert list(findings_of(_recorded(balance_of(granted=10, held=3, used=4)))) == []


@pytest.mark.parametrize("name", Balance.__slots__)
def test_each_figure_that_is_off_is_found(name: str) -> None:
    right = {n: getattr(balance_of(granted=10, held=3, used=4), n) for n in Balance.__slots__}

    (finding,) = findings_of(_recorded(Balance(**right | {name: right[name] + 1})))

    assert finding.law is MoneyLaw.UNBALANCED
    assert name in finding.text


def test_less_than_nothing_is_found() -> None:
    found = list(findings_of(_recorded(Balance(granted=10, available=-1, held=3, charged=8, overrun=0))))

    assert MoneyLaw.NEGATIVE in {finding.law for finding in found}


def _recorded(balance: Balance) -> Recorded:
    account = Account(
        id=AccountId("acct_1"), owner=Owner("ann"), name="main", currency="USD", created_at=Instant(0), balance=balance
    )
    return Recorded(account=account, credited=10, held=3, used=4)
