"""Who may come in: anybody on this machine, or whoever has a token."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from duly.domain.ids import Owner
from duly.domain.tokens import Caller, Role, Unauthenticated
from duly.http.problems import Refusal
from duly.http.use_cases import UseCases

LOCAL = Caller(owner=Owner("local"), role=Role.ADMIN)
_HEALTH = frozenset({"/healthz", "/readyz"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """`is_local`: only this machine can reach the server, so callers without a token are let in as its owner.

    Web pages that its browser shows can reach it, too, and are kept out by what browsers say about them.
    """

    is_local: bool

    @classmethod
    def at(cls, host: str) -> "Access":
        """What a server that is bound to a host needs."""
        return cls(is_local=is_loopback(host))

    def require_local_origin(self, method: str, headers: Headers) -> None:
        """Refuses names that only a web page's tricks lead here by, and changes that another site's page asks for."""
        if not self.is_local:
            return
        host = headers.get("host", "")
        if not is_loopback(_name_of(f"//{host}")):
            raise Refusal(421, f"this server answers to loopback names, not to {host[:60]!a}", code="misdirected")
        if method in _SAFE:
            return
        origin = headers.get("origin")
        is_foreign = origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower())
        if is_foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "changes are not taken from pages of another origin", code="foreign_origin")

    async def caller(self, queue: UseCases, path: str, headers: Headers) -> Caller | None:
        """None for those who only ask whether the server is well."""
        if path in _HEALTH:
            return None
        given = headers.get("authorization")
        if given is None:
            if self.is_local:
                return LOCAL
            raise Unauthenticated
        scheme, _, secret = given.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthenticated
        return await queue.tokens.authenticate(secret.strip())


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _name_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
