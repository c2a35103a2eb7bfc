"""A grant: leave to run certain graphs at an account's cost, until it expires or is revoked."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from duly.domain.errors import InvalidInput, NotFound, Refused
from duly.domain.ids import AccountId, GrantId, Owner
from duly.domain.instants import Instant, written

MOST_SCOPES = 50
EVERY_GRAPH = "graph:execute:*"

_PREFIX = "graph:execute:"
_GRAPH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,159}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Never deleted: what ran under it still names it."""

    id: GrantId
    user_id: Owner
    account_id: AccountId
    scopes: tuple[str, ...]
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None

    def covers(self, graph_id: str) -> bool:
        return EVERY_GRAPH in self.scopes or f"{_PREFIX}{graph_id}" in self.scopes

    def is_good(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def require_good(self, now: Instant) -> None:
        """A grant that is both is revoked: somebody said so."""
        if self.revoked_at is not None:
            raise GrantRevoked(self.id, self.revoked_at)
        if self.expires_at is not None and self.expires_at <= now:
            raise GrantExpired(self.id, self.expires_at)

    def require_covers(self, graph_id: str) -> None:
        if not self.covers(graph_id):
            raise GrantTooNarrow(self.id, graph_id)


def scopes_of(given: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order; nothing but `graph:execute:{graph}` and `graph:execute:*` is a scope."""
    if isinstance(given, str):
        raise InvalidInput("scopes", "is one text", fix="pass a list of scopes")
    scopes = tuple(sorted({_scope_of(scope) for scope in given}))
    if not 1 <= len(scopes) <= MOST_SCOPES:
        raise InvalidInput("scopes", f"has {len(scopes)} scopes", fix=f"use 1 to {MOST_SCOPES}")
    return scopes


def graph_id_of(value: object) -> str:
    if not isinstance(value, str) or not _GRAPH.fullmatch(value):
        raise InvalidInput("graph_id", f"{ascii(value)[:60]} is no graph", fix="name it as provider:name")
    return value


def _scope_of(scope: object) -> str:
    if scope == EVERY_GRAPH:
        return EVERY_GRAPH
    if isinstance(scope, str) and scope.startswith(_PREFIX) and _GRAPH.fullmatch(scope, len(_PREFIX)):
        return scope
    raise InvalidInput("scopes", f"{ascii(scope)[:60]} is no scope", fix=f"use {_PREFIX}<graph> or {EVERY_GRAPH}")


class UnknownGrant(NotFound):
    code = "unknown_grant"

    def __init__(self, grant_id: str) -> None:
        super().__init__(f"there is no grant {grant_id!r}")
        self.grant_id = grant_id


class GrantExpired(Refused):
    """The grant's time is over."""

    code = "grant_expired"

    def __init__(self, grant_id: str, expired_at: Instant) -> None:
        super().__init__(f"grant {grant_id} expired at {written(expired_at)}")
        self.grant_id = grant_id
        self.expired_at = expired_at


class GrantRevoked(Refused):
    """Somebody took the grant back."""

    code = "grant_revoked"

    def __init__(self, grant_id: str, revoked_at: Instant) -> None:
        super().__init__(f"grant {grant_id} was revoked at {written(revoked_at)}")
        self.grant_id = grant_id
        self.revoked_at = revoked_at


class GrantTooNarrow(Refused):
    """The grant is good, and does not cover this graph."""

    code = "grant_scope"

    def __init__(self, grant_id: str, graph_id: str) -> None:
        super().__init__(f"grant {grant_id} does not cover graph {graph_id!r}")
        self.grant_id = grant_id
        self.graph_id = graph_id
