"""`duly group`: jobs that belong together, followed to their common end."""

from typing import TYPE_CHECKING, Any

from duly.application.groups import Again
from duly.cli import exits
from duly.cli.consent import is_dry_run
from duly.cli.costs import cost_from, told_cost
from duly.cli.given import object_from
from duly.cli.listing import Listing, add_page, show_list
from duly.cli.output import facts, note, say, say_json, table, watched
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_max_cost, add_wait, add_watch, whole
from duly.cli.progress import bar, end_of_group
from duly.cli.shapes import at, group_detail_shape, group_retry_shape, group_shape, member_shape
from duly.cli.store import changing, looking
from duly.cli.waiting import deadline_of
from duly.domain.amounts import Amount
from duly.domain.errors import InvalidInput
from duly.domain.groups import Group, GroupMode, GroupStatus, Member, NewGroup
from duly.domain.instants import Instant

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_MOST_MEMBERS = 1_000
_EXAMPLE = '{"members": [{"template": "NAME"}]}'


def define(parser: Parser) -> None:
    commands = Commands(parser)
    listed = commands.add("list", list_all, "all of them, newest first")
    listed.add_argument("--status", choices=list(GroupStatus), help="only those in one status")
    add_page(listed, "GROUP", once="--from")
    add_ = commands.add("add", add, "make one: all its members are right, or nothing is written", once="create")
    add_.add_argument("spec", metavar="JSON", help="its members and mode, as HTTP takes them: JSON, @file, or -")
    add_.add_argument("--sequential", action="store_true", help="one after the other, not all at once")
    add_.add_argument("--owner", default="local", metavar="NAME", help="whose it is (default: local)")
    show_ = commands.add("show", show, "one of them, with its members")
    add_watch(show_)
    cancel_ = commands.add("cancel", cancel, "end what has not started, and ask what runs to stop")
    cancel_.add_argument("--reason", default="cancelled from the shell", metavar="TEXT", help="kept with the group")
    retry_ = commands.add("retry", retry, "try the members again that failed or were cancelled")
    retry_.add_argument(
        "--cap", type=whole(1, _MOST_MEMBERS), metavar="N", help="refuse if more members would be tried"
    )
    add_max_cost(retry_)
    for command in (show_, cancel_, retry_):
        command.add_argument("id", metavar="GROUP")
    for command in (add_, show_, cancel_, retry_):
        add_wait(command)
    for command in (add_, cancel_, retry_):
        add_dry_run(command)
    for command in (add_, show_, cancel_, retry_):
        add_json(command)


def list_all(options: Options) -> None:
    status = None if options.status is None else GroupStatus(options.status)
    show_list(
        options,
        _LISTING,
        lambda queue: queue.groups.list(owner=None, status=status, before=options.after, most=options.most),
    )


def _group_row(group: Group) -> tuple[object, ...]:
    how = (group.mode.value, group.status.value, f"{group.size - group.open}/{group.size}")
    return (group.id, group.name, *how, group.owner, at(group.created_at), at(group.ended_at))


_LISTING: Listing[Group] = Listing(
    heads=("id", "name", "mode", "status", "done", "owner", "created", "ended"),
    row=_group_row,
    shape=group_shape,
    key=lambda group: group.id,
    empty="no groups",
)


def add(options: Options) -> int:
    asked = _asked(options)

    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        if is_dry_run(options, f"make a {asked.mode.value} group of {len(asked.members)}"):
            return exits.OK
        group = await queue.groups.create(asked, owner=options.owner)
        return await _followed(queue, options, group, deadline, f"made {group.id}")

    return changing(change, creates=not options.dry_run)


def _asked(options: Options) -> NewGroup:
    from pydantic import ValidationError

    from duly.wire.groups import NewGroup as Shape

    spec: dict[str, Any] = object_from(options.spec, field="JSON", example=_EXAMPLE) or {}
    if options.sequential:
        spec["mode"] = GroupMode.SEQUENTIAL.value
    try:
        return Shape.model_validate(spec).meant()
    except ValidationError as wrong:
        first = wrong.errors()[0]
        where = ".".join(map(str, first["loc"])) or "JSON"
        raise InvalidInput(where, str(first["msg"]), fix=f"write '{_EXAMPLE}'") from None


def show(options: Options) -> int:
    async def look(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        group = await queue.groups.get(options.id, owner=None)
        if options.wait:
            return await _followed(queue, options, group, deadline, "")
        await watched(options, queue.storage.clock, lambda: _shown(queue, options))
        return exits.OK

    return looking(look)


async def _shown(queue: "Queue", options: Options) -> None:
    group = await queue.groups.get(options.id, owner=None)
    progress = await queue.groups.progress(group.id, owner=None)
    members = await queue.groups.members(group.id, owner=None, most=_MOST_MEMBERS)
    if options.json:
        say_json({**group_detail_shape(group, progress), "members": [member_shape(each) for each in members]})
        return
    facts([(name.replace("_", " "), value) for name, value in group_shape(group).items()])
    say(bar(progress))
    table(("place", "name", "kind", "state", "job", "why"), [_row(member) for member in members], empty="no members")


def _row(member: Member) -> tuple[object, ...]:
    job = None if member.state.value == "pending" else member.last_job or member.job_id
    return (member.place, member.name, member.snapshot.new.kind, member.state.value, job, member.reason)


def cancel(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        group = await queue.groups.get(options.id, owner=None)
        if is_dry_run(options, f"cancel {group.id}, of which {group.open} have not ended"):
            return exits.OK
        group = await queue.groups.cancel(group.id, owner=None, reason=options.reason)
        code = await _followed(queue, options, group, deadline, f"{group.id} is {group.status.value}")
        return exits.OK if code == exits.FAILED else code

    return changing(change)


def retry(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        group = await queue.groups.get(options.id, owner=None)
        max_cost = cost_from(options.max_cost)
        if options.dry_run:
            return _would_retry(options, await queue.groups.preview_retry(group.id, owner=None), max_cost)
        group = await queue.groups.retry(group.id, owner=None, cap=options.cap, max_cost=max_cost)
        return await _followed(queue, options, group, deadline, f"{group.id} is {group.status.value}")

    return changing(change)


def _would_retry(options: Options, again: Again, max_cost: Amount | None) -> int:
    if options.json:
        say_json(group_retry_shape(again, cap=options.cap, max_cost=max_cost))
    else:
        for member in again.members:
            say(" ".join(str(cell) for cell in _row(member) if cell is not None))
        told_cost(again.cost, say)
    note(f"dry run: would try {len(again.members)} members of {again.group.id} again; nothing was changed")
    return exits.OK


async def _followed(queue: "Queue", options: Options, group: Group, deadline: Instant | None, done: str) -> int:
    """What was done; with --wait how the group ended, after how far it came."""
    code = exits.OK
    if options.wait:
        ended = await end_of_group(queue, group.id, deadline=deadline)
        if ended is None:
            note("duly: it did not end in time; it goes on")
            return exits.TIMED_OUT
        group, done = ended, f"{group.id} is {ended.status.value}"
        code = exits.OK if ended.status is GroupStatus.COMPLETED else exits.FAILED
    if options.json:
        say_json(group_detail_shape(group, await queue.groups.progress(group.id, owner=None)))
    else:
        say(done + ("" if options.wait else f"; follow it: duly group show {group.id} --wait"))
    return code
