"""Who may come in: anybody on this machine, or whoever has a token."""

import ipaddress
import re
from dataclasses import dataclass

from starlette.datastructures import Headers

from duly.domain.ids import Owner
from duly.domain.tokens import Caller, Role, Unauthenticated
from duly.http.problems import Refusal
from duly.http.use_cases import UseCases

LOCAL = Caller(owner=Owner("local"), role=Role.ADMIN)
_HEALTH = frozenset({"/healthz", "/readyz"})
_SIGNED = "/api/v1/inbound/"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST = re.compile(r"(?:\[(?P<bracketed>[0-9a-f:.]+)\]|(?P<name>[0-9a-z.-]+))(?::\d{1,5})?", re.ASCII | re.IGNORECASE)
# What proxies add: whoever comes through one need not be on this machine.
_OF_PROXIES = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """`is_local`: only this machine can reach the server, so callers without a token are let in as an admin.

    That is every user of the machine; where not all of them are trusted, loopback should ask for tokens, too. Web pages
    that a browser shows here can reach it as well, and are kept out by what browsers say about them.
    """

    is_local: bool

    @classmethod
    def at(cls, host: str, *, asks_for_tokens: bool = False) -> "Access":
        """What a server that is bound to a host needs."""
        return cls(is_local=is_loopback(host) and not asks_for_tokens)

    def require_local_origin(self, method: str, headers: Headers) -> None:
        """Refuses names that only a web page's tricks lead here by, and changes that another site's page asks for."""
        if not self.is_local:
            return
        hosts = headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else ""
        if not is_loopback(_name_of(host)):
            raise Refusal(421, f"this server answers to loopback names, not to {host[:60]!a}", code="misdirected")
        if any(name in headers for name in _OF_PROXIES):
            why = "a proxy passed this on, and callers without a token must be on this machine"
            raise Refusal(421, f"{why}; set DULY_LOOPBACK=tokens behind a proxy", code="misdirected")
        if method in _SAFE:
            return
        origin = headers.get("origin")
        is_foreign = origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower())
        if is_foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "changes are not taken from pages of another origin", code="foreign_origin")

    async def caller(self, queue: UseCases, path: str, headers: Headers) -> Caller | None:
        """None for those who only ask whether the server is well, and for services whose deliveries are signed."""
        if path in _HEALTH or path.startswith(_SIGNED):
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


def _name_of(host: str) -> str:
    found = _HOST.fullmatch(host)
    return "" if found is None else (found["bracketed"] or found["name"]).lower()
