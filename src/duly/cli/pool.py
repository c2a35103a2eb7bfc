"""`duly pool`: limits, and whether they take and start jobs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import is_dry_run
from duly.cli.given import span_from
from duly.cli.listing import WHOLE, Listing, add_page, paged, show_list
from duly.cli.output import tell
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, whole
from duly.cli.shapes import differences, pool_shape
from duly.cli.store import changing, looking
from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName
from duly.domain.pools import Pool, PoolMode, UnknownPool

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(parser: Parser) -> None:
    commands = Commands(parser)
    listed = commands.add("list", list_all, "all of them")
    add_page(listed, "NAME", most=WHOLE)
    show_ = commands.add("show", show, "one of them")
    set_ = commands.add("set", set_up, "change what is given, or define a new one")
    for command in (show_, set_):
        command.add_argument("name", metavar="NAME")
    set_.add_argument("--slots", type=whole(0, 1_000_000), metavar="N", help="how many jobs may run at once")
    set_.add_argument("--mode", choices=list(PoolMode), help="paused starts none, draining takes no new ones")
    set_.add_argument("--prefetch", type=whole(0, 1_000), metavar="N", help="how many more a worker may hold ready")
    set_.add_argument("--ageing", metavar="SPAN", help="one priority for every such span of waiting; off for none")
    set_.add_argument("--per-owner", metavar="N", help="how many of one owner may run at once; off for no such limit")
    add_dry_run(set_)
    for command in (show_, set_):
        add_json(command)


def list_all(options: Options) -> None:
    async def fetch(queue: "Queue") -> Sequence[Pool]:
        return paged(options, await queue.pools.all(), lambda pool: pool.name)

    show_list(options, _LISTING, fetch)


_LISTING: Listing[Pool] = Listing(
    heads=("name", "slots", "used", "mode", "prefetch"),
    row=lambda pool: (pool.name, pool.slots, pool.used, pool.mode.value, pool.prefetch),
    shape=pool_shape,
    key=lambda pool: pool.name,
    empty="no pools",
)


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        pool = await queue.pools.get(PoolName(options.name))
        tell(options, lambda: pool_shape(pool))

    looking(look)


def set_up(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        name = PoolName(options.name)
        try:
            old = await queue.pools.get(name)
        except UnknownPool:
            if options.slots is None:
                raise InvalidInput(
                    "--slots", f"is missing: {name!r} would be a new pool", fix="give its limit"
                ) from None
            old = None
        asked = _asked(options, Pool(name=name, slots=options.slots or 0) if old is None else old)
        changed = ["new"] if old is None else differences(pool_shape(old), pool_shape(asked))
        if is_dry_run(options, f"set {name}: {', '.join(changed) or 'nothing'}"):
            return exits.OK
        defined = await queue.pools.define(asked)
        tell(options, lambda: pool_shape(defined))
        return exits.OK

    return changing(change, creates=not options.dry_run)


def _asked(options: Options, old: Pool) -> Pool:
    given = {
        "slots": options.slots,
        "mode": None if options.mode is None else PoolMode(options.mode),
        "prefetch": options.prefetch,
    }
    pool = replace(old, **{name: value for name, value in given.items() if value is not None})
    if options.per_owner is not None:
        pool = replace(pool, per_owner=_per_owner(options.per_owner))
    if options.ageing is None:
        return pool
    if options.ageing == "off":
        return replace(pool, ageing_ms=None)
    return replace(pool, ageing_ms=span_from(options.ageing, field="--ageing") // 1_000)


def _per_owner(text: str) -> int | None:
    if text == "off":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidInput("--per-owner", f"{text[:40]!r} is no number of jobs", fix="write --per-owner 2, or off")
    return int(text)
