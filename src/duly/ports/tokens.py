"""Tokens as a store keeps them: a hash of the secret, never the secret."""

from typing import Protocol

from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.tokens import Token


class TokenStore(Protocol):
    async def add(self, token: Token, *, secret_hash: str) -> None:
        """Adding the same again changes nothing."""

    async def by_hash(self, secret_hash: str) -> Token | None: ...

    async def lock(self, token_id: str) -> Token | None:
        """The token, kept from changing until commit."""

    async def of_owner(self, owner: Owner | None) -> list[Token]:
        """In order of id, revoked ones too; of every owner if none is named."""

    async def revoke(self, token_id: str, *, now: Instant) -> None:
        """The first time stands."""

    async def touch(self, token_id: str, *, now: Instant) -> None:
        """It was used; never moves back."""
