"""Who may call: tokens are made, recognised, listed and revoked."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from duly.domain.errors import InvalidInput, Unavailable
from duly.domain.ids import Owner
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.texts import text_of, whole_number_of
from duly.domain.tokens import SECRET_PREFIX, Caller, Role, Token, Unauthenticated, UnknownToken, hash_of
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction

REMEMBERED_FOR = Micros(5 * SECOND)
TOUCHED_EVERY = Micros(60 * SECOND)
MOST_REMEMBERED = 1_000
_LAST_INSTANT = 253_402_300_799_000_000


class _Good:
    """Good secrets by their hashes, each until a reading of the lease's clock."""

    __slots__ = ("_until", "times_forgotten")

    def __init__(self) -> None:
        self._until: dict[str, tuple[Token, Micros]] = {}
        self.times_forgotten = 0

    def get(self, secret_hash: str, lease_now: Micros) -> Token | None:
        token, until = self._until.get(secret_hash, (None, lease_now))
        return token if lease_now < until else None

    def remember(self, secret_hash: str, token: Token, *, until: Micros) -> None:
        if len(self._until) >= MOST_REMEMBERED:
            self._until.clear()
        self._until[secret_hash] = (token, until)

    def forget(self) -> None:
        self._until.clear()
        self.times_forgotten += 1


@dataclass(frozen=True, slots=True)
class Tokens:
    """Good secrets are remembered by their hashes for a few seconds, so that a busy caller costs no read each time.

    A token that another process revokes is good here until it is forgotten.
    """

    storage: Storage
    dice: Dice
    _good: _Good = field(default_factory=_Good)

    async def create(
        self, *, owner: str, role: Role, name: str = "", expires_at: Instant | None = None
    ) -> tuple[Token, str]:
        """The token and its secret, which nobody can show again."""
        now = self.storage.clock.now()
        token = Token(
            id=self.dice.new_id("tok"),
            owner=Owner(text_of(owner, field="owner")),
            role=_role_of(role),
            name=name if name == "" else text_of(name, field="name"),
            created_at=now,
            expires_at=_later(expires_at, now),
        )
        secret = SECRET_PREFIX + self.dice.secret()

        async def work(tx: Transaction) -> None:
            await tx.tokens.add(token, secret_hash=hash_of(secret))

        await self.storage.transact(work)
        return token, secret

    async def authenticate(self, secret: str) -> Caller:
        """Whoever has this secret; raises Unauthenticated, and does not say why."""
        secret_hash = hash_of(secret)
        token = self._good.get(secret_hash, self.storage.clock.lease_now()) or await self._found(secret_hash)
        if token is None or not token.is_good(self.storage.clock.now()):
            raise Unauthenticated
        return Caller(owner=token.owner, role=token.role, token_id=token.id)

    async def _found(self, secret_hash: str) -> Token | None:
        clock = self.storage.clock
        asked_at, now, times_forgotten = clock.lease_now(), clock.now(), self._good.times_forgotten

        async def work(tx: Transaction) -> Token | None:
            return await tx.tokens.by_hash(secret_hash)

        token = await self.storage.read(work)
        if token is not None and token.is_good(now):
            # What was read before a revocation may be what it revoked.
            if times_forgotten == self._good.times_forgotten:
                self._good.remember(secret_hash, token, until=Micros(asked_at + REMEMBERED_FOR))
            await self._touch(token, now)
        return token

    async def _touch(self, token: Token, now: Instant) -> None:
        """When it was used is good to know, and not worth refusing anybody for."""
        if token.last_used_at is not None and now - token.last_used_at < TOUCHED_EVERY:
            return

        async def work(tx: Transaction) -> None:
            await tx.tokens.touch(token.id, now=now)

        with suppress(Unavailable):
            await self.storage.transact(work, single=True)

    async def list(self, *, owner: str | None) -> Sequence[Token]:
        """In order of id, revoked ones too."""
        whose = None if owner is None else Owner(text_of(owner, field="owner"))

        async def work(tx: Transaction) -> Sequence[Token]:
            return await tx.tokens.of_owner(whose)

        return await self.storage.read(work)

    async def revoke(self, token_id: str, *, owner: str | None) -> Token:
        """It stays on the list with the time; revoking it again changes nothing."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Token | None:
            token = await tx.tokens.lock(text_of(token_id, field="id"))
            if token is None or owner not in (None, token.owner):
                raise UnknownToken(token_id)
            await tx.tokens.revoke(token.id, now=now)
            return await tx.tokens.lock(token.id)

        revoked = await self.storage.transact(work)
        if revoked is None:
            raise UnknownToken(token_id)
        self._good.forget()
        return revoked


def _role_of(role: object) -> Role:
    try:
        return Role(str(role))
    except ValueError:
        raise InvalidInput("role", f"{str(role)[:40]!r} is no role", fix=f"use one of {', '.join(Role)}") from None


def _later(expires_at: Instant | None, now: Instant) -> Instant | None:
    if expires_at is None:
        return None
    whole_number_of(expires_at, field="expires_at", least=0, most=_LAST_INSTANT)
    if expires_at <= now:
        raise InvalidInput("expires_at", "has passed", fix="choose a later instant, or none")
    return expires_at
