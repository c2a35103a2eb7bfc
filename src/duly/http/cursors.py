"""Where a page ended, as a text that callers pass back and need not understand."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from duly.domain.errors import InvalidInput

T = TypeVar("T")
_SUM_BYTES = 6
_LONGEST = 1_024
_MOST_DIGITS = 18


class InvalidCursor(InvalidInput):
    code = "invalid_cursor"

    def __init__(self) -> None:
        super().__init__("query.cursor", "is not a cursor of this list", fix="pass next_cursor of its last page")


def cursor_of(listing: str, position: str) -> str:
    """It grants nothing: whoever changes it only begins elsewhere in what they may see anyway."""
    text = json.dumps([listing, position], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_sum(text) + text).decode().rstrip("=")


def position_from(cursor: str | None, listing: str) -> str | None:
    """Where to go on, or InvalidCursor for what is no cursor of this list."""
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        text = raw[_SUM_BYTES:]
        if len(cursor) > _LONGEST or raw[:_SUM_BYTES] != _sum(text):
            raise InvalidCursor
        said = json.loads(text)
    except (ValueError, RecursionError, binascii.Error):
        raise InvalidCursor from None
    match said:
        case [str(found), str(position)] if found == listing:
            return position
    raise InvalidCursor


def number_from(cursor: str | None, listing: str) -> int:
    position = position_from(cursor, listing)
    if position is None:
        return 0
    if not (position.isascii() and position.isdigit() and len(position) <= _MOST_DIGITS):
        raise InvalidCursor
    return int(position)


def cut(found: Sequence[T], limit: int, listing: str, position: Callable[[T], str | int]) -> tuple[list[T], str | None]:
    """The page, and the cursor of the next one; one more than a page was asked for, to know whether there is one."""
    page = list(found[:limit])
    return page, cursor_of(listing, str(position(page[-1]))) if len(found) > limit else None


def _sum(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()[:_SUM_BYTES]
