"""`duly review`: what runs ask people, and what is decided."""

import getpass
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from duly.cli import exits
from duly.cli.output import facts, note, say, say_json, shortened, table, watched
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_most, add_watch
from duly.cli.shapes import at, page, review_shape
from duly.cli.store import changing, looking
from duly.domain.errors import InvalidInput
from duly.domain.reviews import Decision, Review, ReviewState, Verdict

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_LONGEST_QUESTION = 60


def define(parser: Parser) -> None:
    commands = Commands(parser)
    listed = commands.add("list", list_all, "those that are open, newest first")
    listed.add_argument("--state", choices=[*ReviewState, "any"], default="open", help="others (default: open)")
    listed.add_argument("--before", metavar="REVIEW", help="those older than this review")
    add_most(listed)
    add_watch(listed)
    show_ = commands.add("show", show, "one of them, with its question")
    approve_ = commands.add("approve", approve, "let its run go on")
    reject_ = commands.add("reject", reject, "end its run, as cancelled")
    edit_ = commands.add("edit", edit, "let its run go on with a value of your own")
    for command in (show_, approve_, reject_, edit_):
        command.add_argument("id", metavar="REVIEW")
    edit_.add_argument("value", metavar="JSON", help="what the graph goes on with, such as '{\"publish\": false}'")
    for command in (approve_, reject_, edit_):
        command.add_argument("--note", default="", metavar="TEXT", help="kept with the decision")
        command.add_argument("--by", metavar="WHO", help="who decides (default: you)")
        add_dry_run(command)
    for command in (listed, show_, approve_, reject_, edit_):
        add_json(command)


def list_all(options: Options) -> None:
    state = None if options.state == "any" else ReviewState(options.state)

    async def look(queue: "Queue") -> None:
        async def once() -> None:
            found = await queue.reviews.list(owner=None, state=state, before=options.before, most=options.most)
            if options.json:
                cursor = found[-1].id if found else None
                say_json(page([review_shape(each) for each in found], most=options.most, cursor=cursor))
                return
            table(*_rows(found), empty="no reviews" if state is None else f"no reviews are {state}")

        await watched(options, queue.storage.clock, once)

    looking(look)


def _rows(reviews: Sequence[Review]) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    heads = ("id", "graph", "kind", "state", "until", "then", "question")
    rows = [
        (
            each.id,
            each.graph_id,
            each.kind.value,
            each.state.value,
            at(each.deadline),
            each.default.value,
            shortened(each.question, longest=_LONGEST_QUESTION),
        )
        for each in reviews
    ]
    return heads, rows


def show(options: Options) -> int:
    async def look(queue: "Queue") -> int:
        return _told(options, await queue.reviews.get(options.id, owner=None))

    return looking(look)


def approve(options: Options) -> int:
    return _decide(options, Verdict.APPROVE)


def reject(options: Options) -> int:
    return _decide(options, Verdict.REJECT)


def edit(options: Options) -> int:
    try:
        value = json.loads(options.value)
    except ValueError:
        raise InvalidInput("JSON", f"{options.value[:40]!r} is none", fix="quote texts as in '\"yes\"'") from None
    return _decide(options, Verdict.EDIT, value)


def _decide(options: Options, verdict: Verdict, value: Any = None) -> int:
    decision = Decision(verdict=verdict, value=value, note=options.note, by=options.by or _somebody())

    async def change(queue: "Queue") -> int:
        review = await queue.reviews.get(options.id, owner=None)
        if options.dry_run:
            review.require_takes(decision)
            note(f"dry run: would {verdict} {review.id}, which is {review.state}; nothing was changed")
            return exits.OK
        decided = await queue.reviews.decide(options.id, decision, owner=None)
        if options.json:
            say_json(review_shape(decided))
        else:
            say(f"{decided.id} is {decided.state}; {_what_follows(decided)}")
        return exits.OK

    return changing(change)


def _what_follows(decided: Review) -> str:
    return "its run ends" if decided.state is ReviewState.REJECTED else "its run goes on when nothing else is open"


def _told(options: Options, review: Review) -> int:
    shape = review_shape(review)
    if options.json:
        say_json(shape)
        return exits.OK
    shape["question"] = review.question
    shape |= {"default_value": review.default_value, "value": review.value}
    facts([(name.replace("_", " "), value) for name, value in shape.items()])
    return exits.OK


def _somebody() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "the shell"
