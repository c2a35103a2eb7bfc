"""JSON read without guessing: what two readers could understand differently is refused."""

import json
import math
import re
from typing import Any, NoReturn

_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_LONGEST_NUMBER = 400
_MOST_DIGITS = 20


class MalformedJson(ValueError):
    """Says what is wrong with a text that is not JSON, or not one that means the same to everybody."""


def value_from(text: bytes) -> Any:
    try:
        value = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_without_doubles,
            parse_constant=_refuse_constant,
            parse_int=_whole_number,
            parse_float=_number,
        )
    except MalformedJson:
        raise
    except UnicodeDecodeError as error:
        raise MalformedJson(f"is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise MalformedJson("is nested too deep") from None
    except ValueError as error:
        raise MalformedJson(f"is not JSON: {error}") from None
    if _HALF_A_PAIR.search(text):
        _refuse_half_pairs(value)
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise MalformedJson(f"names {_first_double(pairs)[:40]!a} twice in one object")
    return found


def _first_double(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedJson(f"holds {name}, which JSON cannot say")


def _whole_number(text: str) -> int:
    if len(text) > _MOST_DIGITS or not -(2**63) <= int(text) < 2**63:
        raise MalformedJson("holds a whole number beyond 64 bits")
    return int(text)


def _number(text: str) -> float:
    if len(text) > _LONGEST_NUMBER or not math.isfinite(number := float(text)):
        raise MalformedJson("holds a number that is too large")
    return number


def _refuse_half_pairs(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise MalformedJson("holds half a surrogate pair") from None
    except RecursionError:
        raise MalformedJson("is nested too deep") from None
