"""`duly review`: what runs ask people, and what is decided."""

import getpass
import json
from typing import TYPE_CHECKING, Any

from duly.cli import exits
from duly.cli.consent import is_dry_run
from duly.cli.listing import Listing, add_page, show_list
from duly.cli.output import facts, say_json, shortened, tell
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json
from duly.cli.shapes import at, review_shape
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
    add_page(listed, "REVIEW", once="--before")
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
    for command in (show_, approve_, reject_, edit_):
        add_json(command)


def list_all(options: Options) -> None:
    state = None if options.state == "any" else ReviewState(options.state)
    show_list(
        options,
        _listing("no reviews" if state is None else f"no reviews are {state}"),
        lambda queue: queue.reviews.list(owner=None, state=state, before=options.after, most=options.most),
    )


def _listing(empty: str) -> Listing[Review]:
    return Listing(
        heads=("id", "graph", "kind", "state", "until", "then", "question"),
        row=_row,
        shape=review_shape,
        key=lambda review: review.id,
        empty=empty,
    )


def _row(review: Review) -> tuple[object, ...]:
    what = (review.id, review.graph_id, review.kind.value, review.state.value)
    question = shortened(review.question, longest=_LONGEST_QUESTION)
    return (*what, at(review.deadline), review.default.value, question)


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
        if is_dry_run(options, f"{verdict} {review.id}, which is {review.state}"):
            return exits.OK
        decided = await queue.reviews.decide(options.id, decision, owner=None)
        tell(options, lambda: review_shape(decided), f"{decided.id} is {decided.state}; {_what_follows(decided)}")
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
