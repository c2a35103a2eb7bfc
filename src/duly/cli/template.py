"""`duly template`: the moulds of jobs, and jobs from them."""

import shlex
from typing import TYPE_CHECKING, Any

from duly.cli import exits
from duly.cli.consent import held_back, is_dry_run
from duly.cli.given import milliseconds_from, object_from
from duly.cli.job_puts import told_put
from duly.cli.listing import Listing, add_page, show_list
from duly.cli.output import note, tell
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_wait, add_yes, whole
from duly.cli.shapes import at, differences, template_shape
from duly.cli.store import changing, looking
from duly.cli.times import moment_from
from duly.cli.waiting import deadline_of
from duly.domain.errors import InvalidInput
from duly.domain.ids import JobKey, Lane, PoolName
from duly.domain.instants import instant_of
from duly.domain.retries import RetryPolicy
from duly.domain.templates import Command, NewTemplate, ResultAs, Template

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(parser: Parser) -> None:
    commands = Commands(parser)
    listed = commands.add("list", list_all, "all of them")
    add_page(listed, "NAME", once="--from")
    show_ = commands.add("show", show, "one of them, in full")
    add_ = commands.add("add", add, "define one")
    edit_ = commands.add("edit", edit, "change what is given, for jobs that are put from now on")
    delete_ = commands.add("delete", delete, "delete it; its jobs run as they were put")
    put_ = commands.add("put", put, "hand a job made from it to the queue")
    for command in (show_, add_, edit_, delete_, put_):
        command.add_argument("name", metavar="NAME")
    add_.add_argument("--owner", default="local", metavar="NAME", help="whose it is (default: local)")
    for command in (add_, edit_):
        _define_mould(command)
    edit_.add_argument(
        "--expect-version", type=whole(1, 999_999_999), metavar="N", help="refuse if somebody changed it since"
    )
    _define_put(put_)
    add_yes(delete_)
    for command in (add_, edit_, delete_, put_):
        add_dry_run(command)
    for command in (show_, add_, edit_, delete_, put_):
        add_json(command)


def _define_mould(command: Parser) -> None:
    what = command.add_mutually_exclusive_group(required=command.prog.endswith(" add"))
    what.add_argument("--kind", metavar="KIND", help="the handler that does its jobs")
    what.add_argument(
        "--command", metavar="WORDS", help="the program that they run, and its arguments; there is no shell"
    )
    command.add_argument("--result", choices=list(ResultAs), help="the last line that --command prints is the result")
    command.add_argument("--params", metavar="JSON", help="what a job is given unless it says otherwise")
    command.add_argument("--schema", metavar="JSON", help="JSON Schema of the params: JSON, @file, or - for stdin")
    command.add_argument("--pool", metavar="NAME", help="the pool of its jobs (default: default)")
    command.add_argument("--resource", action="append", metavar="POOL", help="another pool that they take a place of")
    command.add_argument("--lane", metavar="NAME", help="jobs of one lane run one at a time")
    command.add_argument("--priority", type=whole(-32_767, 32_767), metavar="N", help="higher goes first (default: 0)")
    command.add_argument("--retries", type=whole(0, 999), metavar="N", help="how often to try again (default: 2)")
    command.add_argument("--time-limit", metavar="SPAN", help="a run that takes longer fails")


def _define_put(command: Parser) -> None:
    command.add_argument("--params", metavar="JSON", help="in the places of the template's, name by name")
    command.add_argument("--key", metavar="TEXT", help="replaces a job of this key that nobody has claimed")
    command.add_argument("--lane", metavar="NAME", help="jobs of one lane run one at a time")
    command.add_argument("--priority", type=whole(-32_767, 32_767), metavar="N", help="higher goes first")
    command.add_argument("--run-at", metavar="WHEN", help="not before this instant")
    add_wait(command)


def list_all(options: Options) -> None:
    show_list(options, _LISTING, lambda queue: queue.templates.list(owner=None, after=options.after, most=options.most))


def _row(template: Template) -> tuple[object, ...]:
    what = (template.name, template.asked.new.kind, template.asked.pool)
    return (*what, template.owner, template.version, at(template.updated_at))


_LISTING: Listing[Template] = Listing(
    heads=("name", "kind", "pool", "owner", "version", "changed"),
    row=_row,
    shape=template_shape,
    key=lambda template: template.name,
    empty="no templates; define one: duly template add NAME --kind KIND",
)


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        template = await queue.templates.get(options.name, owner=None)
        tell(options, lambda: template_shape(template))

    looking(look)


def add(options: Options) -> int:
    asked = NewTemplate(name=options.name, **_given(options))

    async def change(queue: "Queue") -> int:
        await queue.pools.get(asked.pool)
        if is_dry_run(options, f"add {asked.name}"):
            return exits.OK
        made = await queue.templates.create(asked, owner=options.owner)
        tell(options, lambda: template_shape(made), f"added {made.name}")
        return exits.OK

    return changing(change, creates=not options.dry_run)


def edit(options: Options) -> int:
    given = _given(options)

    async def change(queue: "Queue") -> int:
        old = await queue.templates.get(options.name, owner=None)
        asked = _changed(old, given)
        await queue.pools.get(asked.pool)
        changed = asked != old.asked
        if options.dry_run or not changed:
            note(f"dry run: would edit {old.name}; nothing was changed" if changed else f"{old.name} is so already")
            return exits.OK
        saved = await queue.templates.update(asked, owner=None, version=options.expect_version or old.version)
        for line in differences(template_shape(old), template_shape(saved)):
            note(f"  {line}")
        tell(options, lambda: template_shape(saved), f"edited {saved.name}, version {saved.version}")
        return exits.OK

    return changing(change)


def _changed(old: Template, given: dict[str, Any]) -> NewTemplate:
    names = ("kind", "command", "params", "schema", "lane", "pool", "resources", "priority", "retry", "timeout_ms")
    kept = {name: getattr(old.asked, name) for name in (*names, "webhook_url")}
    if "kind" in given or "command" in given:
        kept |= {"kind": None, "command": None}
    return NewTemplate(name=old.name, **{**kept, **given})


def _given(options: Options) -> dict[str, Any]:
    """What was said; the rest is a template's default, or stays."""
    if options.result is not None and options.command is None:
        raise InvalidInput("--result", "is what a --command prints", fix="give --command, too")
    given: dict[str, Any] = {
        "kind": options.kind,
        "command": None if options.command is None else _command(options),
        "params": object_from(options.params, field="--params"),
        "schema": object_from(options.schema, field="--schema"),
        "pool": options.pool and PoolName(options.pool),
        "resources": options.resource and tuple(map(PoolName, options.resource)),
        "lane": options.lane and Lane(options.lane),
        "priority": options.priority,
        "retry": None if options.retries is None else RetryPolicy(max_attempts=options.retries + 1),
        "timeout_ms": milliseconds_from(options.time_limit, field="--time-limit"),
    }
    return {name: value for name, value in given.items() if value is not None}


def _command(options: Options) -> Command:
    try:
        words = shlex.split(options.command)
    except ValueError as error:
        raise InvalidInput("--command", f"cannot be read: {error}", fix="close every quote") from None
    return Command(argv=tuple(words), result=options.result and ResultAs(options.result))


def delete(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        template = await queue.templates.get(options.name, owner=None)
        if (held := held_back(options, f"delete {template.name}", f"delete template {template.name!r}?")) is not None:
            return held
        await queue.templates.delete(template.name, owner=None, version=template.version)
        tell(options, lambda: template_shape(template), f"deleted {template.name}")
        return exits.OK

    return changing(change)


def put(options: Options) -> int:
    run_at = None if options.run_at is None else instant_of(moment_from(options.run_at, field="--run-at"), field="at")
    params = object_from(options.params, field="--params")
    new: dict[str, Any] = {
        "key": None if options.key is None else JobKey(options.key),
        "lane": None if options.lane is None else Lane(options.lane),
        "priority": options.priority,
        "run_at": run_at,
    }

    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        template = await queue.templates.get(options.name, owner=None)
        snapshot = template.snapshot(params, **new)
        snapshot.payload()
        if is_dry_run(options, f"put {snapshot.new.kind} into pool {snapshot.new.pool}"):
            return exits.OK
        done = await queue.jobs.put_from(template.name, params, owner=None, **new)
        return await told_put(queue, options, done, kind=snapshot.new.kind, deadline=deadline)

    return changing(change)
