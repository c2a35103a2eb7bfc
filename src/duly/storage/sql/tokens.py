"""Tokens in SQL."""

from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.tokens import Role, Token
from duly.storage.executor import Executor, Row


class SqlTokens:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, token: Token, *, secret_hash: str) -> None:
        await self._x.fetch("insert_user", id=token.owner, now=token.created_at)
        await self._x.fetch(
            "insert_token",
            id=token.id,
            owner=token.owner,
            role=token.role.value,
            name=token.name,
            secret_hash=secret_hash,
            created_at=token.created_at,
            expires_at=token.expires_at,
        )

    async def by_hash(self, secret_hash: str) -> Token | None:
        for row in await self._x.fetch("token_by_hash", secret_hash=secret_hash):
            return _token_from_row(row)
        return None

    async def lock(self, token_id: str) -> Token | None:
        for row in await self._x.fetch("token_by_id_locked", id=token_id):
            return _token_from_row(row)
        return None

    async def of_owner(self, owner: Owner | None) -> list[Token]:
        if owner is None:
            rows = await self._x.fetch("all_tokens")
        else:
            rows = await self._x.fetch("tokens_of_owner", owner=owner)
        return [_token_from_row(row) for row in rows]

    async def revoke(self, token_id: str, *, now: Instant) -> None:
        await self._x.fetch("revoke_token", id=token_id, now=now)

    async def touch(self, token_id: str, *, now: Instant) -> None:
        await self._x.fetch("touch_token", id=token_id, now=now)


def _token_from_row(row: Row) -> Token:
    return Token(
        id=row[0],
        owner=row[1],
        role=Role(row[2]),
        name=row[3],
        created_at=row[4],
        expires_at=row[5],
        revoked_at=row[6],
        last_used_at=row[7],
    )
