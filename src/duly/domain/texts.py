"""Which texts may enter: short, printable, and the same bytes on every database."""

import re
from functools import lru_cache

from duly.domain.errors import InvalidInput

_NAME = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,63}", re.ASCII)


def name_of(value: object, *, field: str) -> str:
    """A name chosen by people: lower case, so that two spellings never mean two things."""
    if not isinstance(value, str) or not _is_name(value):
        raise InvalidInput(
            field,
            f"{_shown(value)} is not a name",
            fix="use 1 to 64 of a-z 0-9 _ . : - and start with a letter or digit",
        )
    return value


@lru_cache(maxsize=1024)
def _is_name(value: str) -> bool:
    """Kept, because the same few names come with every job."""
    return _NAME.fullmatch(value) is not None


def text_of(value: object, *, field: str, longest: int = 255) -> str:
    """A text chosen by a program: anything printable that both databases store unchanged."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"{_shown(value)} is not text")
    if not 1 <= len(value) <= longest:
        raise InvalidInput(field, f"has {len(value)} characters", fix=f"use 1 to {longest}")
    if not value.isprintable():
        position, character = next((p, c) for p, c in enumerate(value) if not c.isprintable())
        raise InvalidInput(field, f"holds the unprintable character {character!a}", position=position)
    return value


def storable_of(value: object, *, field: str, longest: int) -> str:
    """A text of any kind, lines and all, that both databases keep as it is."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"{_shown(value)} is not text")
    if len(value) > longest:
        raise InvalidInput(field, f"has {len(value)} characters", fix=f"use at most {longest}")
    if "\0" in value:
        raise InvalidInput(field, "holds a NUL character", position=value.index("\0"))
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(field, "holds half a surrogate pair", position=error.start) from None
    return value


def whole_number_of(value: object, *, field: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(field, f"{_shown(value)} is not a whole number", fix=f"use {least} to {most}")
    if not least <= value <= most:
        raise InvalidInput(field, f"{_shown(value)} is out of range", fix=f"use {least} to {most}")
    return value


def _shown(value: object) -> str:
    """Bounded and safe to print, whatever was passed."""
    if isinstance(value, int) and abs(value) > 10**18:
        return "a number of more than 18 digits"
    return ascii(value)[:60] if isinstance(value, (str, int, float, bytes, type(None))) else f"a {type(value).__name__}"
