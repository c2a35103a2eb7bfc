"""Which known name is meant by one that is not known."""

from collections.abc import Collection
from difflib import get_close_matches

_LONGEST = 40
# What other doors call the same thing.
_ALSO_CALLED = {
    "input": "params",
    "interval": "every",
    "kind": "target",
    "params": "input",
    "zone": "timezone",
}


def unknown(name: str, known: Collection[str], *, what: str) -> str:
    """What to say of a name that means nothing here."""
    near = nearest(name, known)
    shown = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
    return f"there is no {what} {shown!a}" + (f"; did you mean {near!r}?" if near else "")


def nearest(name: str, known: Collection[str]) -> str | None:
    if len(name) > _LONGEST:
        return None
    if (other := _ALSO_CALLED.get(name)) in known:
        return other
    close = get_close_matches(name.lower(), sorted(known), n=1)
    return close[0] if close else next((each for each in sorted(known) if _is_short_for(name.lower(), each)), None)


def _is_short_for(short: str, name: str) -> bool:
    """`tz` for `timezone`: its letters in their order, from the first one on."""
    rest = iter(name)
    return len(short) > 1 and short[0] == name[0] and all(letter in rest for letter in short)
