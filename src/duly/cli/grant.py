"""`duly grant`: who may run which graphs at whose cost."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import is_agreed
from duly.cli.given import span_from
from duly.cli.money_shapes import grant_detail_shape, grant_shape
from duly.cli.output import facts, note, say, say_json, table, watched
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_watch, add_yes
from duly.cli.shapes import at, page
from duly.cli.store import changing, looking
from duly.domain.grants import Grant, scopes_of
from duly.domain.instants import Instant

if TYPE_CHECKING:
    from duly.application.grants import BlastRadius
    from duly.bootstrap import Queue

_MOST_NAMED = 10


def define(parser: Parser) -> None:
    commands = Commands(parser)
    create_ = commands.add("create", create, "let its user run graphs at an account's cost")
    create_.add_argument("--account", required=True, metavar="ACCOUNT", help="who pays")
    create_.add_argument(
        "--scope", action="append", required=True, metavar="SCOPE", help="graph:execute:GRAPH, or graph:execute:*"
    )
    create_.add_argument("--user", metavar="NAME", help="whom it is for (default: the account's owner)")
    create_.add_argument("--expires", metavar="SPAN", help="how long it is good for, such as 90d (default: for ever)")
    listed = commands.add("list", list_all, "all of them, revoked ones too")
    listed.add_argument("--owner", metavar="NAME", help="only those of one user")
    add_watch(listed)
    show_ = commands.add("show", show, "one of them, and which schedules would stop without it")
    revoke_ = commands.add("revoke", revoke, "let nothing begin under it any more")
    for command in (show_, revoke_):
        command.add_argument("id", metavar="GRANT")
    add_yes(revoke_)
    for command in (create_, revoke_):
        add_dry_run(command)
    for command in (create_, listed, show_, revoke_):
        add_json(command)


def create(options: Options) -> int:
    life = None if options.expires is None else span_from(options.expires, field="--expires")
    scopes_of(options.scope)

    async def change(queue: "Queue") -> int:
        expires_at = None if life is None else Instant(queue.storage.clock.now() + life)
        if options.dry_run:
            account = await queue.accounts.get(options.account, owner=None)
            note(f"dry run: would make a grant on {account.id} of {account.owner}; nothing was changed")
            return exits.OK
        grant = await queue.grants.create(
            owner=None,
            account_id=options.account,
            scopes=options.scope,
            expires_at=expires_at,
            user_id=options.user,
        )
        if options.json:
            say_json(grant_shape(grant))
        else:
            say(grant.id)
        return exits.OK

    return changing(change)


def list_all(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        async def once() -> None:
            grants = await queue.grants.list(owner=options.owner)
            if options.json:
                say_json(page([grant_shape(grant) for grant in grants]))
                return
            table(
                ("id", "user", "account", "scopes", "created", "expires", "last used", "state"),
                [_row(grant, queue.storage.clock.now()) for grant in grants],
                empty="no grants; a schedule of a graph is given one when it is saved",
            )

        await watched(options, queue.storage.clock, once)

    looking(look)


def _row(grant: Grant, now: Instant) -> tuple[object, ...]:
    scopes = ", ".join(scope.removeprefix("graph:execute:") for scope in grant.scopes)
    times = (at(grant.created_at), at(grant.expires_at), at(grant.last_used_at))
    return (grant.id, grant.user_id, grant.account_id, scopes, *times, _state(grant, now))


def _state(grant: Grant, now: Instant) -> str:
    if grant.revoked_at is not None:
        return "revoked"
    return "expired" if grant.expires_at is not None and grant.expires_at <= now else "active"


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
                ("state", _state(grant, queue.storage.clock.now())),
                ("would stop", ", ".join(radius.schedules) or "no schedule"),
            ]
        )
        return exits.OK

    return looking(look)


def revoke(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        radius = await queue.grants.blast_radius(options.id, owner=None)
        if options.dry_run:
            note(f"dry run: would revoke {options.id}, which stops {_stopped(radius)}; nothing was changed")
            return exits.OK
        if not is_agreed(options, f"revoke {options.id}? it stops {_stopped(radius)}"):
            return exits.FAILED
        grant = await queue.grants.revoke(options.id, owner=None)
        if options.json:
            say_json(grant_shape(grant))
        else:
            say(f"revoked {grant.id}, which stops {_stopped(radius)}")
        return exits.OK

    return changing(change)


def _stopped(radius: "BlastRadius") -> str:
    names = radius.schedules
    if not names:
        return "no schedule"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    many = "1 schedule" if len(names) == 1 else f"{len(names)} schedules"
    return f"{many}: {', '.join(names[:_MOST_NAMED])}{more}"
