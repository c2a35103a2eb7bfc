"""A courier's places: nobody has more of them than are left free."""

from itertools import count

import pytest

from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.webhooks.calls import Calls
from duly.domain.webhooks.endpoints import Endpoint

PLACES = 32


def endpoint(name: str, *, owner: str = "ann", host: str | None = None) -> Endpoint:
    return Endpoint(
        id=name,
        owner=Owner(owner),
        url=f"https://{name}.example/",
        host=host or f"{name}.example:443",
        events=(),
        everything=False,
        note="",
        secret="",
        created_at=Instant(0),
        updated_at=Instant(0),
    )


def filled(calls: Calls, endpoint: Endpoint) -> int:
    """How many more it gets, if it asks for all."""
    for number in count():
        if not calls.may_join(endpoint):
            return number
        calls.join(endpoint)
    raise AssertionError


@pytest.mark.req("RISK-03")
def test_a_webhook_alone_has_a_third_an_owner_and_a_host_a_half() -> None:
    assert filled(Calls(PLACES), endpoint("one")) == 11

    of_an_owner = Calls(PLACES)
    assert sum(filled(of_an_owner, endpoint(f"{n}")) for n in range(100)) <= 16
    to_a_host = Calls(PLACES)
    at_one_host = [endpoint(f"{n}", owner=f"{n}", host="slow.example:443") for n in range(100)]
    assert sum(filled(to_a_host, each) for each in at_one_host) == 16


@pytest.mark.req("RISK-03")
@pytest.mark.parametrize("greedy", [1, 2, 5, 7])
def test_seven_that_take_whatever_they_can_get_leave_a_place_for_the_next(greedy: int) -> None:
    calls = Calls(PLACES)
    for number in range(greedy):
        assert filled(calls, endpoint(f"{number}", owner=f"{number}")) > 0

    assert calls.may_join(endpoint("next", owner="next"))


def test_another_webhook_of_an_owner_finds_a_place_beside_a_slow_one() -> None:
    slow = endpoint("slow")
    calls = Calls(PLACES, [slow] * 11)

    assert not calls.may_join(slow)
    assert calls.may_join(endpoint("other"))
    assert calls.rank(endpoint("another", owner="bob")) < calls.rank(endpoint("other")) < calls.rank(slow)


def test_one_place_is_for_whoever_comes_first() -> None:
    calls = Calls(1)
    assert filled(calls, endpoint("one")) == 1
    assert not calls.may_join(endpoint("two", owner="bob"))
