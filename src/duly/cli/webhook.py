"""`duly webhook`: who is told of what has ended, and what became of telling them. A secret is printed once."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import held_back, is_dry_run
from duly.cli.given import span_from
from duly.cli.listing import WHOLE, Listing, add_page, show_list
from duly.cli.output import facts, note, say_json, tell
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_yes
from duly.cli.shapes import at
from duly.cli.store import changing, looking
from duly.cli.webhook_deliveries import define_deliveries
from duly.cli.webhook_shapes import created_webhook_shape, delivery_shape, webhook_shape
from duly.domain.instants import SECOND
from duly.domain.webhooks.endpoints import Endpoint
from duly.domain.webhooks.events import PATTERNS

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_KEPT = "keep the secret, it is not shown again"


def define(parser: Parser) -> None:
    commands = Commands(parser)
    add_ = commands.add("add", add, "tell an address of what ends; prints the secret, this once", once="create")
    add_.add_argument("url", metavar="URL", help="https, and public")
    add_.add_argument("--owner", default="local", metavar="NAME", help="whose things it is told of (default: local)")
    add_.add_argument(
        "--event", action="append", choices=PATTERNS, metavar="TYPE", help="job.failed, run.*, … (default: all)"
    )
    add_.add_argument("--everything", action="store_true", help="of every owner and of jobs that have none")
    add_.add_argument("--note", default="", metavar="TEXT", help="to tell it from others")
    add_dry_run(add_)
    listed = commands.add("list", list_all, "all of them, without their secrets")
    listed.add_argument("--owner", metavar="NAME", help="only those of one owner")
    add_page(listed, "WEBHOOK", most=WHOLE)
    show_ = commands.add("show", show, "one of them")
    rotate_ = commands.add("rotate", rotate, "draw a new secret and print it, this once")
    rotate_.add_argument("--keep-old", default="24h", metavar="SPAN", help="how long the old one signs, too")
    disable_ = commands.add("disable", disable, "send nothing there any more; what waits has failed")
    disable_.add_argument("--reason", default="disabled by an operator", metavar="TEXT", help="kept with it")
    enable_ = commands.add("enable", enable, "send there again")
    test_ = commands.add("test", test, "send something that says nothing, to see whether it arrives")
    delete_ = commands.add("delete", delete, "forget it, with the log of its deliveries")
    add_yes(delete_)
    for command in (show_, rotate_, disable_, enable_, test_, delete_):
        command.add_argument("id", metavar="WEBHOOK")
    for command in (rotate_, disable_, enable_, test_, delete_):
        add_dry_run(command)
    for command in (add_, show_, rotate_, disable_, enable_, test_, delete_):
        add_json(command)
    define_deliveries(commands)


def add(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        queue.webhooks.rule.target_of(options.url)
        if is_dry_run(options, f"tell {options.url}"):
            return exits.OK
        endpoint, secret = await queue.webhooks.create(
            options.url,
            owner=options.owner,
            events=options.event or ["*"],
            everything=options.everything,
            note=options.note,
        )
        _say_secret(options, endpoint, secret)
        return exits.OK

    return changing(change, creates=not options.dry_run)


def list_all(options: Options) -> None:
    show_list(
        options,
        _LISTING,
        lambda queue: queue.webhooks.list(owner=options.owner, after=options.after, most=options.most),
    )


def _row(endpoint: Endpoint) -> tuple[object, ...]:
    what = (endpoint.url, _events(endpoint), _state(endpoint))
    return (endpoint.id, endpoint.owner, *what, at(endpoint.created_at))


_LISTING: Listing[Endpoint] = Listing(
    heads=("id", "owner", "url", "events", "state", "created"),
    row=_row,
    shape=webhook_shape,
    key=lambda endpoint: endpoint.id,
    empty="no webhooks; make one: duly webhook add URL",
)


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        _say(options, await queue.webhooks.get(options.id, owner=None))

    looking(look)


def rotate(options: Options) -> int:
    kept_s = span_from(options.keep_old, field="--keep-old") // SECOND

    async def act(queue: "Queue") -> None:
        endpoint, secret = await queue.webhooks.rotate(options.id, owner=None, keep_old_s=kept_s)
        _say_secret(options, endpoint, secret)

    return _change(options, "give a new secret to", act)


def disable(options: Options) -> int:
    async def act(queue: "Queue") -> None:
        _say(options, await queue.webhooks.disable(options.id, owner=None, reason=options.reason))

    return _change(options, "disable", act)


def enable(options: Options) -> int:
    async def act(queue: "Queue") -> None:
        _say(options, await queue.webhooks.enable(options.id, owner=None))

    return _change(options, "enable", act)


def test(options: Options) -> int:
    async def act(queue: "Queue") -> None:
        delivery = await queue.webhooks.test(options.id, owner=None)
        tell(options, lambda: delivery_shape(delivery), delivery.id)
        note("whoever keeps time delivers it; see: duly webhook delivery " + delivery.id)

    return _change(options, "send a test to", act)


def delete(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        endpoint = await queue.webhooks.get(options.id, owner=None)
        question = f"delete {endpoint.id}, to {endpoint.url}, with the log of its deliveries?"
        if (held := held_back(options, f"delete {endpoint.id}", question)) is not None:
            return held
        await queue.webhooks.delete(endpoint.id, owner=None)
        tell(options, lambda: webhook_shape(endpoint), f"deleted {endpoint.id}")
        return exits.OK

    return changing(change)


def _change(options: Options, what: str, act: "Callable[[Queue], Awaitable[None]]") -> int:
    async def change(queue: "Queue") -> int:
        endpoint = await queue.webhooks.get(options.id, owner=None)
        if not is_dry_run(options, f"{what} {endpoint.id}"):
            await act(queue)
        return exits.OK

    return changing(change)


def _say_secret(options: Options, endpoint: Endpoint, secret: str) -> None:
    tell(options, lambda: created_webhook_shape(endpoint, secret), secret)
    note(f"{endpoint.id}, to {endpoint.url}; {_KEPT}")


def _say(options: Options, endpoint: Endpoint) -> None:
    if options.json:
        say_json(webhook_shape(endpoint))
        return
    facts(
        [
            ("id", endpoint.id),
            ("owner", endpoint.owner),
            ("url", endpoint.url),
            ("events", _events(endpoint)),
            ("everything", "yes" if endpoint.everything else None),
            ("note", endpoint.note),
            ("state", _state(endpoint)),
            ("reason", endpoint.disabled_reason),
            ("old secret until", at(endpoint.old_secret_until)),
            ("created", at(endpoint.created_at)),
        ]
    )


def _events(endpoint: Endpoint) -> str:
    return ", ".join(endpoint.events) or "what names it"


def _state(endpoint: Endpoint) -> str:
    return "active" if endpoint.is_enabled else "disabled"
