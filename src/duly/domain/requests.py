"""Requests that carry an idempotency key: executed once, answered alike however often they are sent."""

import re
from dataclasses import dataclass

from duly.domain.errors import Conflict, InvalidInput
from duly.domain.ids import Owner
from duly.domain.instants import SECOND, Micros
from duly.domain.texts import text_of

CLAIM_LEASE = Micros(60 * SECOND)

_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_HEADER = "Idempotency-Key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Named by who sends it, where to, and its key; `hash` tells whether it asks for the same."""

    owner: Owner
    route: str
    key: str
    hash: str

    def __post_init__(self) -> None:
        text_of(self.owner, field="owner")
        text_of(self.route, field="route")
        text_of(self.hash, field="hash")
        if not isinstance(self.key, str) or _KEY.fullmatch(self.key) is None:
            raise InvalidInput(_HEADER, "is not a key", fix="use 1 to 255 visible ASCII characters, without spaces")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Kept byte for byte, so that a repetition cannot be told from the first."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The right to execute a request. Whatever its execution draws is made of `draw`, which stays the same when another
    caller takes over; `token` does not. `is_repeated`: an earlier execution may have done it, and could not say so.
    """

    draw: str
    token: int
    is_repeated: bool = False


class KeyReused(InvalidInput):
    """The key already stands for another request."""

    code = "idempotency_key_reused"

    def __init__(self) -> None:
        super().__init__(_HEADER, "was used for a request that asks for something else", fix="use a fresh key")


class StillRunning(Conflict):
    """Somebody is executing this request."""

    code = "request_in_progress"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"this request is being executed: ask again in {retry_after_s} s at the latest")
        self.retry_after_s = retry_after_s
