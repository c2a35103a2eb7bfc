"""Who is calling: tokens, the roles they carry, and what a caller may do and see."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from duly.domain.errors import NotFound, Refused
from duly.domain.ids import Owner
from duly.domain.instants import Instant

SECRET_PREFIX = "duly_"  # noqa: S105 - what every secret begins with, so that scanners of texts find a leaked one


class Role(StrEnum):
    """Each covers those before it."""

    VIEWER = "viewer"  # looks
    OPERATOR = "operator"  # also changes what is its own
    ADMIN = "admin"  # sees and changes everything, and makes tokens

    def covers(self, other: "Role") -> bool:
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known of a secret; the secret itself is shown once and kept nowhere."""

    id: str
    owner: Owner
    role: Role
    name: str
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None

    def is_good(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    owner: Owner
    role: Role
    token_id: str | None = None

    @property
    def sees(self) -> str | None:
        """The owner whose things it sees; None for an admin, who sees everything."""
        return None if self.role is Role.ADMIN else self.owner

    def require(self, role: Role) -> None:
        if not self.role.covers(role):
            raise Forbidden(role, found=self.role)


def hash_of(secret: str) -> str:
    """A secret is drawn from too many to guess, so one round is enough: nobody can try them all."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Forbidden(Refused):
    """The caller is known, and may not do this."""

    code = "forbidden"

    def __init__(self, needed: Role, *, found: Role) -> None:
        super().__init__(f"this needs the role {needed}, and the caller has {found}")
        self.needed = needed
        self.found = found


class Unauthenticated(Refused):
    """No token, or one that is unknown, expired or revoked: which of these is nobody's business."""

    code = "unauthenticated"

    def __init__(self) -> None:
        super().__init__("a valid token is needed")


class TooManyStreams(Refused):
    """A token follows as many runs at once as it may: one of its streams has to end first."""

    code = "too_many_streams"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"this token has {most} streams open at this server, the most it may have (DULY_STREAMS_PER_TOKEN); "
            "close one of them, or come back when one has ended"
        )


class UnknownToken(NotFound):
    code = "unknown_token"

    def __init__(self, token_id: str) -> None:
        super().__init__(f"there is no token {token_id!r}")
        self.token_id = token_id
