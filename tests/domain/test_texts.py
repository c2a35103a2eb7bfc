"""Texts and numbers that may enter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.errors import InvalidInput
from duly.domain.texts import name_of, text_of, whole_number_of


@pytest.mark.parametrize("name", ["a", "0", "mail.send", "a-b_c:d.e", "x" * 64])
def test_a_name_is_lower_case_and_short(name: str) -> None:
    assert name_of(name, field="kind") == name


@pytest.mark.parametrize(
    "name", ["", "A", "-a", "_a", ".a", "a b", "a/b", "é", "x" * 65, "a\n", "\n", "a\0", "ａ", None, 1, b"a", ["a"]]
)
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match=r"kind: .* is not a name"):
        name_of(name, field="kind")


@pytest.mark.parametrize("text", ["a", "Ünïcode ☃", " ", "a/b", "x" * 255])
def test_a_text_is_printable(text: str) -> None:
    assert text_of(text, field="key") == text


@pytest.mark.parametrize("text", ["", "x" * 256, "a\0", "a\nb", "\x1b[31m", "\ud800", "\u200b", None, 7])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(InvalidInput, match="key"):
        text_of(text, field="key")


def test_the_place_of_a_bad_character_is_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        text_of("abc\0", field="key")

    assert (refused.value.field, refused.value.position) == ("key", 3)


@given(st.text())
def test_an_accepted_text_can_be_stored_by_every_database(text: str) -> None:
    try:
        text_of(text, field="key")
    except InvalidInput:
        return
    assert "\0" not in text
    assert text.encode().decode() == text


@pytest.mark.parametrize("number", [0, 5, 10])
def test_a_whole_number_within_its_bounds(number: int) -> None:
    assert whole_number_of(number, field="n", least=0, most=10) == number


@pytest.mark.parametrize("number", [-1, 11, pytest.param(10**5_000, id="huge"), True, 1.0, float("nan"), "1", None])
def test_what_is_no_whole_number_is_refused(number: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        whole_number_of(number, field="n", least=0, most=10)

    assert len(str(refused.value)) < 200
    assert refused.value.fix == "use 0 to 10"
