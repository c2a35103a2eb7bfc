"""Lists: a table for people, a page of JSON for programs, and for both where the next page begins."""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from duly.cli.output import note, say_json, table, watched
from duly.cli.parser import Options, Parser, add_json, add_most, add_watch
from duly.cli.shapes import Json, page
from duly.cli.store import looking

if TYPE_CHECKING:
    from duly.bootstrap import Queue

T = TypeVar("T")

# What people make by hand is shown whole, unless somebody has very many.
WHOLE = 1_000

# How ids begin: of what else somebody names, the list would have nothing, or everything, behind it.
_BEGINNINGS = {
    "RUN": ("run_", "exe_"),
    "JOB": ("job_",),
    "GROUP": ("grp_",),
    "REVIEW": ("review_",),
    "DELIVERY": ("dlv_",),
    "WEBHOOK": ("whe_",),
    "ACCOUNT": ("acct_",),
    "GRANT": ("grant_",),
    "BUDGET": ("bud_",),
    "TOKEN": ("tok_",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """What is told of each thing; `key` is what the next page is asked for by."""

    heads: Sequence[str]
    row: Callable[[T], Sequence[object]]
    shape: Callable[[T], Json]
    key: Callable[[T], str | None]
    empty: str

    def tell(self, options: Options, found: Sequence[T], *, is_last: bool) -> None:
        following = None if is_last or not found else self.key(found[-1])
        if options.json:
            say_json(page([self.shape(each) for each in found], following))
            return
        table(self.heads, [self.row(each) for each in found], empty=self.empty)
        if following is not None:
            note(f"there may be more: --after {following}")


def add_page(
    parser: Parser, named: str, *, most: int = 20, once: str | None = None, read: Callable[[str], object] | None = None
) -> None:
    """`once` is what `--after` was called before: still understood, and no longer shown."""
    read = read or _id_of(named)
    parser.add_argument("--after", type=read, metavar=named, help="those that follow this one in the list")
    if once is not None:
        parser.add_argument(once, dest="after", type=read, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    add_most(parser, most)
    add_watch(parser)
    add_json(parser)


def _id_of(named: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        beginnings = _BEGINNINGS.get(named, ("",))
        if not text.startswith(beginnings):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is none that the list names (take the last id of a page)")
        return text

    return read


def show_list(options: Options, listing: Listing[T], fetch: "Callable[[Queue], Awaitable[Sequence[T]]]") -> None:
    async def look(queue: "Queue") -> None:
        async def once() -> None:
            found = await fetch(queue)
            listing.tell(options, found, is_last=len(found) < options.most)

        await watched(options, queue.storage.clock, once)

    looking(look)


def paged(options: Options, found: Sequence[T], key: Callable[[T], str]) -> Sequence[T]:
    """A page of what was fetched whole, in the order of its keys."""
    return [each for each in sorted(found, key=key) if key(each) > (options.after or "")][: options.most]
