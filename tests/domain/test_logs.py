"""How a line of output is kept."""

import pytest

from duly.domain.logs import LONGEST_LINE_BYTES, line_text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"plain", "plain"),
        (b"from Windows\r", "from Windows"),
        ("grüße".encode(), "grüße"),
        (b"a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        (b"\xff\xfe", "\N{REPLACEMENT CHARACTER}" * 2),
    ],
)
def test_a_line_is_kept_as_text_that_every_database_takes(raw: bytes, text: str) -> None:
    assert line_text(raw) == text


def test_a_long_line_is_cut_and_says_by_how_much() -> None:
    longest = b"x" * LONGEST_LINE_BYTES

    assert line_text(longest) == longest.decode()
    assert line_text(longest + b"yy") == f"{longest.decode()} … 2 more bytes"
    assert line_text(longest * 2) == f"{longest.decode()} … 8,192 more bytes"


def test_a_character_that_is_cut_in_half_is_replaced() -> None:
    text = line_text(b"x" + "ü".encode() * LONGEST_LINE_BYTES)

    assert text.startswith("xü")
    assert "ü\N{REPLACEMENT CHARACTER} … " in text
