"""Where in a request a refused value stands, in the words of the request."""

import re

from duly.domain.cadence import InvalidCron, InvalidInterval, InvalidZone
from duly.domain.errors import InvalidInput

_BY_ERROR = {InvalidCron: "/cron", InvalidZone: "/timezone", InvalidInterval: "/every"}
# Where the core has another word than the request.
_BY_FIELD = {
    "kind": "target",
    "params": "input",
    "max_attempts": "retry/max_attempts",
    "backoff_ms": "retry/backoff_ms",
    "backoff_cap_ms": "retry/backoff_cap_ms",
}
_OF_NO_FIELD = frozenset({"cadence", "instant", "expected_revision"})
_STEPS = re.compile(r"[^.\[\]]+")


def pointer_of(error: InvalidInput) -> str:
    """A JSON Pointer into the body; empty for the whole of it."""
    for kind, pointer in _BY_ERROR.items():
        if isinstance(error, kind):
            return pointer
    first, *others = _STEPS.findall(error.field.partition(", ")[0]) or [""]
    if first in _OF_NO_FIELD:
        return ""
    return pointer_to(*_BY_FIELD.get(first, first).split("/"), *others)


def pointer_to(*steps: str | int) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)
