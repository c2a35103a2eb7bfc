"""Which services may call each other: by a secret they share, or by a token that one of them has signed."""

import hmac
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import jwt
from starlette.datastructures import Headers

from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner
from duly.domain.instants import SECOND
from duly.domain.tokens import Caller, Role, Unauthenticated
from duly.http.access import Access
from duly.http.use_cases import UseCases

AUDIENCE = "duly-internal"
TYPE = "duly-internal+jwt"
SHORTEST_SECRET = 32
_PUBLIC_KEY = "DULY_INTERNAL_API_PUBLIC_KEY"
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccess(Access):
    """Asked for on loopback, too. A signed token says by itself who calls; with the secret, `X-Duly-Service` does.

    Each key has its one algorithm: what a token says about its own is compared, never believed.
    """

    is_local: bool = False
    secret: str = field(repr=False)
    public_key: str | None = None

    def __post_init__(self) -> None:
        if len(self.secret.encode()) < SHORTEST_SECRET:
            raise InvalidInput(
                "DULY_INTERNAL_API_TOKEN", f"has fewer than {SHORTEST_SECRET} bytes", fix="draw a longer one"
            )
        if self.public_key is not None:
            _require_ed25519(self.public_key)

    async def caller(self, queue: UseCases, path: str, headers: Headers) -> Caller | None:  # noqa: ARG002 - all paths
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            raise Unauthenticated
        shown = given.strip()
        if hmac.compare_digest(shown.encode("utf-8", "replace"), self.secret.encode()):
            return _service(headers.get("x-duly-service", "unnamed"))
        return _service(self._signed_by(shown, queue.storage.clock.now() // SECOND))

    def _signed_by(self, token: str, now: int) -> object:
        claims = self._claims(token)
        expires, begins = claims.get("exp"), claims.get("nbf", 0)
        if type(expires) is not int or expires <= now or type(begins) is not int or begins > now:
            raise Unauthenticated
        return claims.get("sub")

    def _claims(self, token: str) -> dict[str, Any]:
        """The time is looked at by whoever has the clock."""
        try:
            header = jwt.get_unverified_header(token)
            if header.get("typ") != TYPE:
                raise Unauthenticated
            key, algorithm = (
                (self.secret, "HS256") if header.get("alg") == "HS256" else (self.public_key or "", "EdDSA")
            )
            if not key:
                raise Unauthenticated
            options: Any = {
                "require": ["aud", "exp", "sub"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            }
            return jwt.decode(token, key, algorithms=[algorithm], audience=AUDIENCE, options=options)
        except (jwt.PyJWTError, ValueError, TypeError):
            raise Unauthenticated from None


def _require_ed25519(public_key: str) -> None:
    """Before anybody calls: a key of another kind would let in nobody, or let in by another algorithm."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415
    except ImportError:
        raise InvalidInput(_PUBLIC_KEY, "needs a library to check", fix="pip install 'duly[jwt]'") from None
    try:
        is_ed25519 = isinstance(load_pem_public_key(public_key.encode()), Ed25519PublicKey)
    except ValueError:
        raise InvalidInput(_PUBLIC_KEY, "is no key that can be read", fix="give an Ed25519 one in PEM") from None
    if not is_ed25519:
        raise InvalidInput(_PUBLIC_KEY, "is a key of another kind", fix="give an Ed25519 one in PEM")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesToo(Access):
    """The public API's own rule, and on some paths services besides, by the token they share or one they signed."""

    services: ServiceAccess | None = None
    prefixes: tuple[str, ...] = ()

    async def caller(self, queue: UseCases, path: str, headers: Headers) -> Caller | None:
        if self.services is not None and path.startswith(self.prefixes) and "authorization" in headers:
            with suppress(Unauthenticated):
                return await self.services.caller(queue, path, headers)
        return await Access.caller(self, queue, path, headers)


def _service(name: object) -> Caller:
    known = name if isinstance(name, str) and _SERVICE.fullmatch(name) else "unnamed"
    return Caller(owner=Owner(f"service:{known}"), role=Role.ADMIN)
