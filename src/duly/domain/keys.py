"""Keys made of names that people choose: two runs never have one key, whatever their schedules and keys are called."""

import hashlib
from urllib.parse import quote

from duly.domain.errors import InvalidInput

# What the keys of runs begin with that no cadence planned, so no schedule's id may.
OWN_PREFIXES = ("manual:", "backfill:")
LONGEST_IN_ASCII = 255
_DIGITS = 48
_MARK = "#"
_ESCAPED = "~"
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))


def key_of_own_run(own_key: str, slot_key: str) -> str:
    """`manual:{key}:{schedule}:{instant}` for the own key `manual:{key}`, and likewise for a backfill."""
    kind, _, key = own_key.partition(":")
    return f"{kind}:{_one_word(key)}:{slot_key}"


def _one_word(key: str) -> str:
    """One with a colon could be read as a shorter key and a longer schedule's id. In no more room than it takes itself,
    if it is long, because the whole must fit where keys go.
    """
    if ":" not in key and not key.startswith(_MARK):
        return key
    return _MARK + hashlib.sha256(key.encode()).hexdigest()[:_DIGITS]


def in_ascii(key: str) -> str:
    """As a header carries it: what is visible ASCII as it is, anything else escaped, so that no two become one."""
    if not key.startswith(_ESCAPED) and len(key) <= LONGEST_IN_ASCII and all(letter in _VISIBLE for letter in key):
        return key
    escaped = _ESCAPED + quote(key, safe=_VISIBLE.replace("%", ""))
    if len(escaped) <= LONGEST_IN_ASCII:
        return escaped
    return _ESCAPED + _MARK + hashlib.sha256(key.encode()).hexdigest()


def schedule_before_slot(text: str) -> str:
    """The schedule's id in what stands before the instant of a run's key."""
    kind, _, rest = text.partition(":")
    return rest.partition(":")[2] if f"{kind}:" in OWN_PREFIXES and ":" in rest else text


def require_no_own_key(schedule_id: str) -> None:
    """Slots of such a schedule would have the keys of another one's runs by hand."""
    for prefix in OWN_PREFIXES:
        if schedule_id.startswith(prefix):
            raise InvalidInput(
                "id",
                f"{prefix!r} begins the keys of runs that no cadence planned",
                fix="choose an id that begins with another word",
            )
