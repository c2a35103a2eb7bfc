"""`duly budget`: what accounts and schedules may spend within a window."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import is_agreed
from duly.cli.money_shapes import budget_shape
from duly.cli.output import facts, note, say, say_json, table, watched
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_watch, add_yes
from duly.cli.shapes import page
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
    add_watch(listed)
    show_ = commands.add("show", show, "one of them")
    delete_ = commands.add("delete", delete, "lift the limit")
    for command in (show_, delete_):
        command.add_argument("id", metavar="BUDGET")
    add_yes(delete_)
    for command in (set_, delete_):
        add_dry_run(command)
    for command in (set_, listed, show_, delete_):
        add_json(command)


def set_up(options: Options) -> int:
    limit = parse_amount(options.limit, field="--limit")
    if (options.schedule is None) == (options.account is None):
        raise InvalidInput("--schedule, --account", "exactly one of them is needed", fix="say whose spending it limits")
    scope = BudgetScope.ACCOUNT if options.schedule is None else BudgetScope.SCHEDULE
    named = options.account if options.schedule is None else options.schedule

    async def change(queue: "Queue") -> int:
        if options.dry_run:
            note(f"dry run: would limit {scope} {named} to {written_amount(limit)}; nothing was changed")
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
        return _told(options, budget)

    return changing(change)


def list_all(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        async def once() -> None:
            budgets = await queue.budgets.list(owner=options.owner)
            if options.json:
                say_json(page([budget_shape(budget) for budget in budgets]))
                return
            table(
                ("id", "owner", "scope", "of", "window", "limit", "used", "when exceeded"),
                [_row(budget) for budget in budgets],
                empty="no budgets; set one: duly budget set --schedule ID --window day --limit 1.00",
            )

        await watched(options, queue.storage.clock, once)

    looking(look)


def _row(budget: Budget) -> tuple[object, ...]:
    window = budget.window.value if budget.timezone == "UTC" else f"{budget.window}, {budget.timezone}"
    amounts = (written_amount(budget.limit), written_amount(budget.used))
    whose = (budget.id, budget.owner, budget.scope.value, budget.scope_id)
    return (*whose, window, *amounts, budget.on_exceeded.value)


def show(options: Options) -> int:
    async def look(queue: "Queue") -> int:
        return _told(options, await queue.budgets.get(options.id, owner=None))

    return looking(look)


def delete(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        budget = await queue.budgets.get(options.id, owner=None)
        if options.dry_run:
            note(f"dry run: would delete {budget.id}; nothing was changed")
            return exits.OK
        if not is_agreed(options, f"delete {budget.id}? {budget.scope} {budget.scope_id} may then spend without it"):
            return exits.FAILED
        await queue.budgets.delete(budget.id, owner=None)
        if options.json:
            say_json(budget_shape(budget))
        else:
            say(f"deleted {budget.id}")
        return exits.OK

    return changing(change)


def _told(options: Options, budget: Budget) -> int:
    shape = budget_shape(budget)
    if options.json:
        say_json(shape)
    else:
        facts([(name.replace("_", " "), value) for name, value in shape.items()])
    return exits.OK
