"""JSON that users hand in: checked once, stored as compact text, the same on every database."""

import json
import json.encoder
import math
from collections.abc import Callable, Iterator
from typing import Any, NewType

from duly.domain.errors import InvalidInput

Payload = NewType("Payload", str)

DEEPEST = 64
LARGEST_BYTES = 1_048_576
EMPTY = Payload("{}")

_INT64 = 2**63
_LONGEST_POINTER = 200


def payload_of(value: object, *, field: str) -> Payload:
    """Compact text of a JSON object; anything JSON or a database would change or refuse is refused here."""
    if value is None:
        return EMPTY
    if not isinstance(value, dict):
        raise InvalidInput(field, f"is a {type(value).__name__}, not a dict", fix="pass a dict of named values")
    return json_of(value, field=field)


def json_of(value: object, *, field: str) -> Payload:
    """Compact text of any JSON value; names stay in the order given."""
    if not _is_plainly_sound(value):
        for pointer, item in _walk(value, field):
            _check(pointer, item)
    text = _compact(value)
    # No character takes more than four bytes, so most texts need not be encoded to be measured.
    if len(text) * 4 > LARGEST_BYTES and (size := len(text.encode())) > LARGEST_BYTES:
        raise _too_large(field, str(size))
    return Payload(text)


def value_of(payload: Payload) -> Any:
    return json.loads(payload)


def _compact_encoder() -> Callable[[object], str]:
    """`JSONEncoder.encode` makes a C encoder for every value, which takes longer than using it; this one is kept."""
    encoder = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))
    make: Callable[..., Callable[[object, int], tuple[str, ...]]] | None
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    in_pieces = make(None, encoder.default, json.encoder.encode_basestring, None, ":", ",", False, False, True)
    return lambda value: "".join(in_pieces(value, 0))


_compact = _compact_encoder()


def _is_plainly_sound(value: object) -> bool:
    """Most payloads are a few named ASCII texts and numbers, which a glance can pass; anything else is walked."""
    if type(value) is not dict:
        return False
    for name, item in value.items():
        if type(name) is not str or not name.isascii() or "\0" in name:
            return False
        if type(item) is str:
            if not item.isascii() or "\0" in item:
                return False
        elif type(item) is int:
            if not -_INT64 <= item < _INT64:
                return False
        elif item is not None and type(item) is not bool:
            return False
    return True


def _too_large(field: str, size: str) -> InvalidInput:
    return InvalidInput(
        field, f"is {size} bytes as JSON", fix=f"keep it under {LARGEST_BYTES}, pass a reference instead"
    )


def _walk(root: object, field: str) -> Iterator[tuple[str, object]]:
    """Every value below `root`, without recursion: depth is the caller's to choose and ours to refuse."""
    pending: list[tuple[str, object, int]] = [(field, root, 1)]
    values = 1
    while pending:
        pointer, value, depth = pending.pop()
        yield pointer, value
        if not isinstance(value, (dict, list, tuple)):
            continue
        if depth > DEEPEST:
            raise InvalidInput(field, f"is nested deeper than {DEEPEST} levels", fix="flatten it")
        values += len(value)
        if values * 2 > LARGEST_BYTES:  # a value and what parts it from the next; lists within lists can be shared
            raise _too_large(field, f"more than {LARGEST_BYTES}")
        if isinstance(value, dict):
            for name, item in value.items():
                _check_name(pointer, name)
                pending.append((_below(pointer, name), item, depth + 1))
        else:
            pending.extend((f"{pointer}[{index}]", item, depth + 1) for index, item in enumerate(value))


def _below(pointer: str, name: str) -> str:
    """Where a value stands, in a line that can be read."""
    return f"{pointer}.{name}" if len(pointer) + len(name) < _LONGEST_POINTER else f"{pointer}…"[:_LONGEST_POINTER]


def _check_name(pointer: str, name: object) -> None:
    if not isinstance(name, str):
        raise InvalidInput(pointer, f"has the name {name!r:.40}, which is not text", fix="JSON names are strings")
    _check_text(f"{pointer}, a name in it", name)


def _check(pointer: str, value: object) -> None:
    match value:
        case None | bool() | dict() | list() | tuple():
            return
        case str():
            _check_text(pointer, value)
        case int():
            if not -_INT64 <= value < _INT64:
                raise InvalidInput(pointer, "is an integer beyond 64 bits", fix="pass it as a string")
        case float():
            if not math.isfinite(value):
                raise InvalidInput(pointer, f"is {value}, which JSON cannot say", fix="use null or a string")
        case _:
            raise InvalidInput(pointer, f"is a {type(value).__name__}, which JSON cannot say", fix="convert it first")


def _check_text(pointer: str, text: str) -> None:
    if "\0" in text:
        raise InvalidInput(pointer, "holds a NUL character", position=text.index("\0"))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(pointer, "holds half a surrogate pair", position=error.start) from None
