"""Where a piece of work stands in a trace, and how W3C Trace Context writes that."""

import hashlib
import re
from typing import NamedTuple

_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)


class Trace(NamedTuple):
    """A span of a trace, as others are told of it."""

    trace_id: str
    span_id: str
    is_sampled: bool = True

    @property
    def header(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


def trace_of(header: str | None) -> Trace | None:
    """From a `traceparent`; what is none begins no error, only another trace."""
    found = _HEADER.fullmatch(header or "")
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    if not int(found[2], 16) or not int(found[3], 16):
        return None
    return Trace(found[2], found[3], is_sampled=bool(int(found[4], 16) & 1))


def is_trace_id(text: str | None) -> bool:
    return text is not None and _ID.fullmatch(text) is not None and int(text, 16) != 0


def trace_id_from(seed: str) -> str:
    """The same for the same seed, wherever it is worked out."""
    return hashlib.sha256(f"trace:{seed}".encode()).hexdigest()[:32]


def span_id_from(seed: str) -> str:
    return hashlib.sha256(f"span:{seed}".encode()).hexdigest()[:16]
