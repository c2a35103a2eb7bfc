"""`duly budget`: what accounts and schedules may spend within a window."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import held_back, is_dry_run
from duly.cli.listing import WHOLE, Listing, add_page, paged, show_list
from duly.cli.money_shapes import budget_shape
from duly.cli.output import tell
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_yes
from duly.cli.store import changing, looking
from duly.domain.amounts import parse_amount, written_amount
from duly.domain.billing import Budget, BudgetScope, OnExceeded, Window
from duly.domain.errors import InvalidInput

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(parser: Parser) -> None:
    commands = Commands(parser)
    set_ = commands.add("set", set_up, "limit what an account or a schedule may spend, or change the limit")
    set_.add_argument("--schedule", metavar="SCHEDULE", help="whose runs it limits")
    set_.add_argument("--account", metavar="ACCOUNT", help="or: whose money it limits")
    set_.add_argument(
        "--window", choices=list(Window), required=True, help="what it is for: a day, a week, …, or in all"
    )
    set_.add_argument("--limit", required=True, metavar="AMOUNT", help="such as 1.00, in the account's currency")
    set_.add_argument("--tz", default="UTC", metavar="ZONE", help="whose midnight begins a day (default: UTC)")
    set_.add_argument(
        "--on-exceeded", choices=list(OnExceeded), default=OnExceeded.SKIP, help="what becomes of a run (default: skip)"
    )
    listed = commands.add("list", list_all, "all of them, with what is used")
    listed.add_argument("--owner", metavar="NAME", help="only those of one owner")
    add_page(listed, "BUDGET", most=WHOLE)
    show_ = commands.add("show", show, "one of them")
    delete_ = commands.add("delete", delete, "lift the limit")
    for command in (show_, delete_):
        command.add_argument("id", metavar="BUDGET")
    add_yes(delete_)
    for command in (set_, delete_):
        add_dry_run(command)
    for command in (set_, show_, delete_):
        add_json(command)


def set_up(options: Options) -> int:
    limit = parse_amount(options.limit, field="--limit")
    if (options.schedule is None) == (options.account is None):
        raise InvalidInput("--schedule, --account", "exactly one of them is needed", fix="say whose spending it limits")
    scope = BudgetScope.ACCOUNT if options.schedule is None else BudgetScope.SCHEDULE
    named = options.account if options.schedule is None else options.schedule

    async def change(queue: "Queue") -> int:
        if is_dry_run(options, f"limit {scope} {named} to {written_amount(limit)}"):
            return exits.OK
        budget = await queue.budgets.set(
            scope,
            named,
            owner=None,
            window=options.window,
            limit=limit,
            timezone=options.tz,
            on_exceeded=options.on_exceeded,
        )
        tell(options, lambda: budget_shape(budget))
        return exits.OK

    return changing(change)


def list_all(options: Options) -> None:
    async def fetch(queue: "Queue") -> Sequence[Budget]:
        return paged(options, await queue.budgets.list(owner=options.owner), lambda budget: budget.id)

    show_list(options, _LISTING, fetch)


def _row(budget: Budget) -> tuple[object, ...]:
    window = budget.window.value if budget.timezone == "UTC" else f"{budget.window}, {budget.timezone}"
    amounts = (written_amount(budget.limit), written_amount(budget.used))
    whose = (budget.id, budget.owner, budget.scope.value, budget.scope_id)
    return (*whose, window, *amounts, budget.on_exceeded.value)


_LISTING: Listing[Budget] = Listing(
    heads=("id", "owner", "scope", "of", "window", "limit", "used", "when exceeded"),
    row=_row,
    shape=budget_shape,
    key=lambda budget: budget.id,
    empty="no budgets; set one: duly budget set --schedule ID --window day --limit 1.00",
)


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        budget = await queue.budgets.get(options.id, owner=None)
        tell(options, lambda: budget_shape(budget))

    looking(look)


def delete(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        budget = await queue.budgets.get(options.id, owner=None)
        question = f"delete {budget.id}? {budget.scope} {budget.scope_id} may then spend without it"
        if (held := held_back(options, f"delete {budget.id}", question)) is not None:
            return held
        await queue.budgets.delete(budget.id, owner=None)
        tell(options, lambda: budget_shape(budget), f"deleted {budget.id}")
        return exits.OK

    return changing(change)
