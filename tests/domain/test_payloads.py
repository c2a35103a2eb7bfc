"""Payloads: what JSON or a database would change or refuse is refused by us, with the place named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.errors import InvalidInput
from duly.domain.payloads import DEEPEST, EMPTY, LARGEST_BYTES, json_of, payload_of, value_of

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXT, JSON))
def test_what_goes_in_comes_out(value: dict[str, Any]) -> None:
    assert value_of(payload_of(value, field="params")) == value


@given(st.dictionaries(TEXT, JSON))
def test_the_text_is_compact_and_stays_the_same_when_read_and_written_again(value: dict[str, Any]) -> None:
    text = payload_of(value, field="params")

    assert payload_of(json.loads(text), field="params") == text


def test_nothing_is_the_empty_object() -> None:
    assert payload_of(None, field="params") == payload_of({}, field="params") == EMPTY


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": {"b": [1, float("nan")]}}, "params.a.b[1]"),
        ({"a": float("-inf")}, "params.a"),
        ({"a": 2**63}, "params.a"),
        ({"a": -(2**63) - 1}, "params.a"),
        ({"a": "x\0"}, "params.a, position 1"),
        ({"a": "\ud800"}, "params.a, position 0"),
        ({"\udc00": 1}, "params, a name in it, position 0"),
        ({"a": [object()]}, "params.a[0]"),
        ({None: 1}, "params"),
        ({"a": {1, 2}}, "params.a"),
        ([], "params"),
        ("{}", "params"),
    ],
)
def test_what_cannot_be_kept_is_refused_where_it_stands(value: object, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        payload_of(value, field="params")

    assert str(refused.value).startswith(f"{place}:")


def test_nesting_is_refused_beyond_its_bound_and_never_overflows_the_stack() -> None:
    def nested(depth: int) -> list[Any]:
        value: list[Any] = []
        for _ in range(depth - 1):
            value = [value]
        return value

    json_of(nested(DEEPEST), field="result")
    for depth in (DEEPEST + 1, 10_000, 200_000):
        with pytest.raises(InvalidInput, match="nested deeper"):
            json_of(nested(depth), field="result")


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(InvalidInput, match="nested deeper"):
        json_of(loop, field="result")


def test_a_small_value_that_would_write_out_endlessly_is_refused_in_time() -> None:
    """Each level holds the one below twice: sixty lines of Python, 2⁶⁰ of JSON."""
    doubled: list[Any] = []
    for _ in range(60):
        doubled = [doubled, doubled]

    with pytest.raises(InvalidInput, match="bytes as JSON"):
        json_of(doubled, field="result")


def test_params_of_few_lists_that_share_each_other_are_refused_in_time() -> None:
    """41 lists that hold a thousand times the one below: what is still to be looked at must not pile up either."""
    shared: list[Any] = []
    for _ in range(40):
        shared = [shared] * 1_000

    with pytest.raises(InvalidInput, match="bytes as JSON"):
        payload_of({"a": shared}, field="params")


def test_as_many_values_as_fit_are_kept() -> None:
    as_many = (LARGEST_BYTES - 1) // 2

    assert len(json_of([0] * as_many, field="result")) <= LARGEST_BYTES
    with pytest.raises(InvalidInput, match="bytes as JSON"):
        json_of([0] * (as_many + 1), field="result")


def test_size_is_counted_in_bytes() -> None:
    room = LARGEST_BYTES - len('{"a":""}')

    payload_of({"a": "x" * room}, field="params")
    payload_of({"a": "é" * (room // 2)}, field="params")
    for text in ("x" * (room + 1), "é" * (room // 2 + 1)):
        with pytest.raises(InvalidInput, match="bytes as JSON"):
            payload_of({"a": text}, field="params")


def test_a_refusal_stays_short_however_long_the_names_are() -> None:
    with pytest.raises(InvalidInput) as refused:
        payload_of({"n" * 100_000: {"m" * 100_000: float("nan")}}, field="params")

    assert len(str(refused.value)) < 500
