"""What runs will cost: sums by account, what nobody knows, and what is too much."""

import pytest

from duly.application.estimates import DEFAULT_HOLD, hold_for
from duly.domain.amounts import Amount
from duly.domain.errors import InvalidInput
from duly.domain.estimates import Estimate, Past, Purse
from duly.domain.ids import AccountId


def purse(name: str, held: int, *, available: int = 100, currency: str = "USD", runs: int = 1) -> Purse:
    return Purse(account_id=AccountId(name), currency=currency, runs=runs, held=Amount(held), available=available)


@pytest.mark.req("OWN-05")
def test_sums_are_by_currency_and_covers_by_account() -> None:
    estimate = Estimate(runs=7, unbounded=1, purses=(purse("a", 60), purse("b", 70), purse("c", 101, currency="EUR")))

    assert estimate.held == {"USD": 130, "EUR": 101}
    assert (estimate.free, estimate.is_covered) == (3, False)
    assert Estimate(runs=2, purses=(purse("a", 100),)).is_covered


@pytest.mark.req("OWN-05")
def test_a_mean_is_rounded_up_so_that_nothing_looks_cheaper_than_it_was() -> None:
    past = Past(runs=3, spent=10, unmetered=0, currency="USD")

    assert past.mean == 4
    assert list(Estimate(runs=1, unbounded=1, past=(past,)).in_words()) == [
        "For 1 run nothing is held, and nothing says what that may cost: unmetered.",
        "Such runs have cost 0.000004 USD on average, over 3 runs.",
    ]


@pytest.mark.req("OWN-05", error=True)
def test_a_cap_refuses_what_is_more_and_what_nobody_knows() -> None:
    dear, unknown = Estimate(runs=1, purses=(purse("a", 60),)), Estimate(runs=2, unbounded=1)

    for estimate, field in ((dear, "max_cost"), (unknown, "max_cost")):
        with pytest.raises(InvalidInput) as refused:
            estimate.require_within(Amount(59))
        assert (refused.value.field, bool(refused.value.fix)) == (field, True)
        estimate.require_within(None)
    dear.require_within(Amount(60))
    assert [dear.fits(Amount(most)) for most in (59, 60)] == [False, True]
    assert (dear.fits(None), unknown.fits(None), unknown.fits(Amount(10**9))) == (True, True, False)


@pytest.mark.req("OWN-05")
def test_what_is_held_is_what_was_asked_else_a_unit_for_a_paid_model() -> None:
    assert [hold_for(cost, model, None) for cost, model in ((5, "m"), (0, "m"), (None, "m"), (None, None))] == [
        5,
        0,
        DEFAULT_HOLD,
        0,
    ]
