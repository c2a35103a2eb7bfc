"""Tokens, in JSON. A secret is shown once, and never kept."""

from typing import Annotated

from pydantic import ConfigDict, Field

from duly.domain.instants import moment_of
from duly.domain.tokens import Role
from duly.domain.tokens import Token as DomainToken
from duly.wire.moments import Moment, moment_or_none
from duly.wire.shapes import Shape


class NewToken(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"owner": "ann", "role": "operator", "name": "laptop"}]})

    owner: str
    role: Annotated[Role, Field(strict=False)]
    name: str = ""
    expires_at: Moment | None = None


class Token(Shape):
    id: str
    owner: str
    role: Role
    name: str
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None


class CreatedToken(Token):
    secret: Annotated[str | None, Field(description="Shown this once. null: this answer is a replay.")]


def token_shape(token: DomainToken) -> Token:
    return Token(
        id=token.id,
        owner=token.owner,
        role=token.role,
        name=token.name,
        created_at=moment_of(token.created_at),
        expires_at=moment_or_none(token.expires_at),
        revoked_at=moment_or_none(token.revoked_at),
        last_used_at=moment_or_none(token.last_used_at),
    )


def created_token_shape(token: DomainToken, secret: str | None) -> CreatedToken:
    return CreatedToken(**dict(token_shape(token)), secret=secret)
