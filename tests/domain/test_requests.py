"""Which requests can carry an idempotency key."""

from dataclasses import replace

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner
from duly.domain.requests import KeyReused, Request, StillRunning

GOOD = Request(owner=Owner("ann"), route="POST /runs", key="k", hash="h")


@pytest.mark.parametrize("key", ["a", "!" * 255, "~", '"quoted"', "0190f8a2-7c3b"])
def test_a_key_is_visible_ascii(key: str) -> None:
    assert replace(GOOD, key=key).key == key


@pytest.mark.parametrize("key", ["", "!" * 256, "two words", "tab\t", "line\n", "é", "\x7f", None, 7])
def test_any_other_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        replace(GOOD, key=key)

    assert refusal.value.field == "Idempotency-Key"


@pytest.mark.parametrize("field", ["owner", "route", "hash"])
def test_nothing_else_of_a_request_may_be_empty(field: str) -> None:
    with pytest.raises(InvalidInput):
        replace(GOOD, **{field: ""})  # type: ignore[arg-type]


def test_refusals_say_what_to_do() -> None:
    assert "fresh key" in str(KeyReused())
    assert "7 s" in str(StillRunning(7))
    assert (KeyReused.code, StillRunning.code) == ("idempotency_key_reused", "request_in_progress")
