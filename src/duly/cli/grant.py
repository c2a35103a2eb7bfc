"""`duly grant`: who may run which graphs at whose cost."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import held_back, is_dry_run
from duly.cli.listing import WHOLE, Listing, add_page, paged, show_list
from duly.cli.money_shapes import grant_detail_shape, grant_shape
from duly.cli.output import facts, say_json, tell
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_yes
from duly.cli.shapes import at
from duly.cli.store import changing, looking
from duly.cli.validity import add_expires, end_of, life_from, state_of
from duly.domain.grants import Grant, scopes_of

if TYPE_CHECKING:
    from duly.application.grants import BlastRadius
    from duly.bootstrap import Queue

_MOST_NAMED = 10


def define(parser: Parser) -> None:
    commands = Commands(parser)
    add_ = commands.add("add", add, "let its user run graphs at an account's cost", once="create")
    add_.add_argument("--account", required=True, metavar="ACCOUNT", help="who pays")
    add_.add_argument(
        "--scope", action="append", required=True, metavar="SCOPE", help="graph:execute:GRAPH, or graph:execute:*"
    )
    add_.add_argument("--user", metavar="NAME", help="whom it is for (default: the account's owner)")
    add_expires(add_)
    listed = commands.add("list", list_all, "all of them, revoked ones too")
    listed.add_argument("--owner", metavar="NAME", help="only those of one user")
    add_page(listed, "GRANT", most=WHOLE)
    show_ = commands.add("show", show, "one of them, and which schedules would stop without it")
    revoke_ = commands.add("revoke", revoke, "let nothing begin under it any more")
    for command in (show_, revoke_):
        command.add_argument("id", metavar="GRANT")
    add_yes(revoke_)
    for command in (add_, revoke_):
        add_dry_run(command)
    for command in (add_, show_, revoke_):
        add_json(command)


def add(options: Options) -> int:
    life = life_from(options)
    scopes_of(options.scope)

    async def change(queue: "Queue") -> int:
        account = await queue.accounts.get(options.account, owner=None)
        if is_dry_run(options, f"make a grant on {account.id} of {account.owner}"):
            return exits.OK
        grant = await queue.grants.create(
            owner=None,
            account_id=options.account,
            scopes=options.scope,
            expires_at=end_of(life, queue.storage.clock),
            user_id=options.user,
        )
        tell(options, lambda: grant_shape(grant), grant.id)
        return exits.OK

    return changing(change)


def list_all(options: Options) -> None:
    async def fetch(queue: "Queue") -> list[tuple[Grant, str]]:
        found = paged(options, await queue.grants.list(owner=options.owner), lambda grant: grant.id)
        return [(grant, state_of(grant, queue.storage.clock.now())) for grant in found]

    show_list(options, _LISTING, fetch)


def _row(told: tuple[Grant, str]) -> tuple[object, ...]:
    grant, state = told
    scopes = ", ".join(scope.removeprefix("graph:execute:") for scope in grant.scopes)
    times = (at(grant.created_at), at(grant.expires_at), at(grant.last_used_at))
    return (grant.id, grant.user_id, grant.account_id, scopes, *times, state)


_LISTING: Listing[tuple[Grant, str]] = Listing(
    heads=("id", "user", "account", "scopes", "created", "expires", "last used", "state"),
    row=_row,
    shape=lambda told: grant_shape(told[0]),
    key=lambda told: told[0].id,
    empty="no grants; a schedule of a graph is given one when it is saved",
)


def show(options: Options) -> int:
    async def look(queue: "Queue") -> int:
        radius = await queue.grants.blast_radius(options.id, owner=None)
        if options.json:
            say_json(grant_detail_shape(radius))
            return exits.OK
        grant = radius.grant
        facts(
            [
                ("id", grant.id),
                ("user", grant.user_id),
                ("account", grant.account_id),
                ("scopes", ", ".join(grant.scopes)),
                ("created", at(grant.created_at)),
                ("expires", at(grant.expires_at)),
                ("last used", at(grant.last_used_at)),
                ("revoked", at(grant.revoked_at)),
                ("state", state_of(grant, queue.storage.clock.now())),
                ("would stop", ", ".join(radius.schedules) or "no schedule"),
            ]
        )
        return exits.OK

    return looking(look)


def revoke(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        radius = await queue.grants.blast_radius(options.id, owner=None)
        stops = f"stops {_stopped(radius)}"
        held = held_back(options, f"revoke {options.id}, which {stops}", f"revoke {options.id}? it {stops}")
        if held is not None:
            return held
        grant = await queue.grants.revoke(options.id, owner=None)
        tell(options, lambda: grant_shape(grant), f"revoked {grant.id}, which {stops}")
        return exits.OK

    return changing(change)


def _stopped(radius: "BlastRadius") -> str:
    names = radius.schedules
    if not names:
        return "no schedule"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    many = "1 schedule" if len(names) == 1 else f"{len(names)} schedules"
    return f"{many}: {', '.join(names[:_MOST_NAMED])}{more}"
