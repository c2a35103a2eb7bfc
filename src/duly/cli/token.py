"""`duly token`: what callers of the HTTP API show. A secret is printed once, and cannot be found again."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import is_agreed
from duly.cli.given import span_from
from duly.cli.output import note, say, say_json, table, watched
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_watch, add_yes
from duly.cli.shapes import at, created_token_shape, page, token_shape
from duly.cli.store import changing, looking
from duly.domain.errors import InvalidInput
from duly.domain.instants import Instant
from duly.domain.texts import text_of
from duly.domain.tokens import Role, Token, UnknownToken

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(parser: Parser) -> None:
    commands = Commands(parser)
    create_ = commands.add("create", create, "draw a secret and print it, this once")
    create_.add_argument("--owner", default="local", metavar="NAME", help="who it stands for (default: local)")
    create_.add_argument("--role", choices=list(Role), default=Role.OPERATOR, help="what it may do (default: operator)")
    create_.add_argument("--name", default="", metavar="TEXT", help="to tell it from others")
    create_.add_argument("--expires", metavar="SPAN", help="how long it is good for, such as 90d (default: for ever)")
    add_dry_run(create_)
    listed = commands.add("list", list_all, "all of them, without their secrets")
    listed.add_argument("--owner", metavar="NAME", help="only those of one owner")
    add_watch(listed)
    revoke_ = commands.add("revoke", revoke, "make it worthless for ever, everywhere within 5 seconds")
    revoke_.add_argument("id", metavar="TOKEN")
    add_yes(revoke_)
    add_dry_run(revoke_)
    for command in (create_, listed, revoke_):
        add_json(command)


def create(options: Options) -> int:
    life = None if options.expires is None else span_from(options.expires, field="--expires")
    text_of(options.owner, field="--owner")

    async def change(queue: "Queue") -> int:
        expires_at = None if life is None else Instant(queue.storage.clock.now() + life)
        if options.dry_run:
            note(f"dry run: would make a token of {options.owner}, {options.role}; nothing was changed")
            return exits.OK
        token, secret = await queue.tokens.create(
            owner=options.owner, role=Role(options.role), name=options.name, expires_at=expires_at
        )
        if options.json:
            say_json(created_token_shape(token, secret))
        else:
            say(secret)
        note(f"{token.id}, {token.role.value} of {token.owner}; keep the secret, it is not shown again")
        return exits.OK

    return changing(change, creates=not options.dry_run)


def list_all(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        async def once() -> None:
            tokens = await queue.tokens.list(owner=options.owner)
            if options.json:
                say_json(page([token_shape(token) for token in tokens]))
                return
            table(
                ("id", "owner", "role", "name", "created", "expires", "last used", "state"),
                [_row(token, queue.storage.clock.now()) for token in tokens],
                empty="no tokens; make one: duly token create",
            )

        await watched(options, queue.storage.clock, once)

    looking(look)


def _row(token: Token, now: Instant) -> tuple[object, ...]:
    state = "active"
    if token.expires_at is not None and token.expires_at <= now:
        state = "expired"
    if token.revoked_at is not None:
        state = "revoked"
    return (
        token.id,
        token.owner,
        token.role.value,
        token.name,
        at(token.created_at),
        at(token.expires_at),
        at(token.last_used_at),
        state,
    )


def revoke(options: Options) -> int:
    if not options.id.startswith("tok_"):
        raise InvalidInput("TOKEN", "is no id of a token", fix="name it as duly token list does, never by its secret")

    async def change(queue: "Queue") -> int:
        known = {token.id for token in await queue.tokens.list(owner=None)}
        if options.id not in known:
            raise UnknownToken(options.id)
        if options.dry_run:
            note(f"dry run: would revoke {options.id}; nothing was changed")
            return exits.OK
        if not is_agreed(options, f"revoke {options.id}? whoever shows it is refused within 5 seconds"):
            return exits.FAILED
        token = await queue.tokens.revoke(options.id, owner=None)
        if options.json:
            say_json(token_shape(token))
        else:
            say(f"revoked {token.id}")
        return exits.OK

    return changing(change)
