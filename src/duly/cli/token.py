"""`duly token`: what callers of the HTTP API show. A secret is printed once, and cannot be found again."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import held_back, is_dry_run
from duly.cli.listing import WHOLE, Listing, add_page, paged, show_list
from duly.cli.output import note, tell
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_yes
from duly.cli.shapes import at, created_token_shape, token_shape
from duly.cli.store import changing, looking
from duly.cli.validity import add_expires, end_of, life_from, state_of
from duly.domain.errors import InvalidInput
from duly.domain.texts import text_of
from duly.domain.tokens import Role, Token, UnknownToken

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(parser: Parser) -> None:
    commands = Commands(parser)
    add_ = commands.add("add", add, "draw a secret and print it, this once", once="create")
    add_.add_argument("--owner", default="local", metavar="NAME", help="who it stands for (default: local)")
    add_.add_argument("--role", choices=list(Role), default=Role.OPERATOR, help="what it may do (default: operator)")
    add_.add_argument("--name", default="", metavar="TEXT", help="to tell it from others")
    add_expires(add_)
    add_dry_run(add_)
    listed = commands.add("list", list_all, "all of them, without their secrets")
    listed.add_argument("--owner", metavar="NAME", help="only those of one owner")
    add_page(listed, "TOKEN", most=WHOLE)
    show_ = commands.add("show", show, "one of them, without its secret")
    revoke_ = commands.add("revoke", revoke, "make it worthless for ever, everywhere within 5 seconds")
    for command in (show_, revoke_):
        command.add_argument("id", metavar="TOKEN")
    add_yes(revoke_)
    add_dry_run(revoke_)
    for command in (add_, show_, revoke_):
        add_json(command)


def add(options: Options) -> int:
    life = life_from(options)
    text_of(options.owner, field="--owner")

    async def change(queue: "Queue") -> int:
        if is_dry_run(options, f"make a token of {options.owner}, {options.role}"):
            return exits.OK
        token, secret = await queue.tokens.create(
            owner=options.owner,
            role=Role(options.role),
            name=options.name,
            expires_at=end_of(life, queue.storage.clock),
        )
        tell(options, lambda: created_token_shape(token, secret), secret)
        note(f"{token.id}, {token.role.value} of {token.owner}; keep the secret, it is not shown again")
        return exits.OK

    return changing(change, creates=not options.dry_run)


def list_all(options: Options) -> None:
    async def fetch(queue: "Queue") -> list[tuple[Token, str]]:
        found = paged(options, await queue.tokens.list(owner=options.owner), lambda token: token.id)
        return [(token, state_of(token, queue.storage.clock.now())) for token in found]

    show_list(options, _LISTING, fetch)


def _row(told: tuple[Token, str]) -> tuple[object, ...]:
    token, state = told
    times = (at(token.created_at), at(token.expires_at), at(token.last_used_at))
    return (token.id, token.owner, token.role.value, token.name, *times, state)


_LISTING: Listing[tuple[Token, str]] = Listing(
    heads=("id", "owner", "role", "name", "created", "expires", "last used", "state"),
    row=_row,
    shape=lambda told: token_shape(told[0]),
    key=lambda told: told[0].id,
    empty="no tokens; make one: duly token add",
)


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        token = await _known(queue, options.id)
        tell(options, lambda: token_shape(token))

    looking(look)


def revoke(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        token = await _known(queue, options.id)
        question = f"revoke {token.id}? whoever shows it is refused within 5 seconds"
        if (held := held_back(options, f"revoke {token.id}", question)) is not None:
            return held
        revoked = await queue.tokens.revoke(token.id, owner=None)
        tell(options, lambda: token_shape(revoked), f"revoked {revoked.id}")
        return exits.OK

    return changing(change)


async def _known(queue: "Queue", token_id: str) -> Token:
    if not token_id.startswith("tok_"):
        raise InvalidInput("TOKEN", "is no id of a token", fix="name it as duly token list does, never by its secret")
    for token in await queue.tokens.list(owner=None):
        if token.id == token_id:
            return token
    raise UnknownToken(token_id)
