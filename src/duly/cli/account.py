"""`duly account`: who pays. Opening one, adding credit, and what was spent."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.money_shapes import account_shape, statement_shape
from duly.cli.output import facts, note, say_json, table, watched
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_watch, whole
from duly.cli.shapes import at, page
from duly.cli.store import changing, looking
from duly.domain.amounts import parse_amount, written_amount
from duly.domain.billing import Account, Credit, currency_of
from duly.domain.texts import text_of

if TYPE_CHECKING:
    from duly.application.accounts import Line
    from duly.bootstrap import Queue


def define(parser: Parser) -> None:
    commands = Commands(parser)
    create_ = commands.add("create", create, "open one, with nothing in it")
    create_.add_argument("name", metavar="NAME")
    create_.add_argument("--owner", default="local", metavar="NAME", help="whose it is (default: local)")
    create_.add_argument("--currency", default="USD", metavar="CODE", help="three capitals (default: USD)")
    listed = commands.add("list", list_all, "all of them")
    listed.add_argument("--owner", metavar="NAME", help="only those of one owner")
    add_watch(listed)
    show_ = commands.add("show", show, "one of them")
    statement_ = commands.add("statement", statement, "what came in and what was spent, newest first")
    statement_.add_argument(
        "--most", type=whole(1, 1_000), default=50, metavar="N", help="how many lines at most (default: 50)"
    )
    credit_ = commands.add("credit", credit, "add money to it")
    for command in (show_, statement_, credit_):
        command.add_argument("id", metavar="ACCOUNT")
    credit_.add_argument("amount", metavar="AMOUNT", help="such as 5.00, in the account's currency")
    credit_.add_argument("--key", required=True, metavar="TEXT", help="the same key again adds nothing")
    for command in (create_, credit_):
        add_dry_run(command)
    for command in (create_, listed, show_, statement_, credit_):
        add_json(command)


def create(options: Options) -> int:
    text_of(options.owner, field="--owner")
    currency_of(options.currency)

    async def change(queue: "Queue") -> int:
        if options.dry_run:
            note(f"dry run: would open an account {options.name} of {options.owner}; nothing was changed")
            return exits.OK
        return _told(
            options,
            await queue.accounts.create(owner=options.owner, name=options.name, currency=options.currency),
        )

    return changing(change, creates=not options.dry_run)


def list_all(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        async def once() -> None:
            accounts = await queue.accounts.list(owner=options.owner, most=1_000)
            if options.json:
                say_json(page([account_shape(account) for account in accounts]))
                return
            table(
                ("id", "owner", "name", "currency", "available", "held", "charged", "overrun"),
                [_row(account) for account in accounts],
                empty="no accounts; open one: duly account create NAME",
            )

        await watched(options, queue.storage.clock, once)

    looking(look)


def _row(account: Account) -> tuple[object, ...]:
    balance = account.balance
    amounts = (balance.available, balance.held, balance.charged, balance.overrun)
    return (account.id, account.owner, account.name, account.currency, *map(written_amount, amounts))


def show(options: Options) -> int:
    async def look(queue: "Queue") -> int:
        return _told(options, await queue.accounts.get(options.id, owner=None))

    return looking(look)


def statement(options: Options) -> int:
    async def look(queue: "Queue") -> int:
        told = await queue.accounts.statement(options.id, owner=None, most=options.most)
        if options.json:
            say_json(statement_shape(told))
            return exits.OK
        heads = ("at", "kind", "amount", "model", "tokens in", "tokens out", "reference")
        table(heads, [_line(line) for line in told.lines], empty="nothing came in, and nothing was spent")
        if told.unmetered:
            note(f"{told.unmetered} receipts have no amount: nobody knows what they cost")
        return exits.OK

    return looking(look)


def _line(line: "Line") -> tuple[object, ...]:
    if isinstance(line, Credit):
        return (at(line.created_at), "credit", written_amount(line.amount), None, None, None, line.key)
    amount = "unmetered" if line.amount is None else written_amount(line.amount)
    usage = line.usage
    used = (None, None, None) if usage is None else (usage.model, usage.input_tokens, usage.output_tokens)
    return (at(line.created_at), "receipt", amount, *used, line.source_reference)


def credit(options: Options) -> int:
    amount = parse_amount(options.amount, field="AMOUNT")

    async def change(queue: "Queue") -> int:
        if options.dry_run:
            account = await queue.accounts.get(options.id, owner=None)
            note(f"dry run: would add {written_amount(amount)} {account.currency} to {account.id}; nothing was changed")
            return exits.OK
        return _told(options, await queue.accounts.credit(options.id, amount=amount, key=options.key))

    return changing(change)


def _told(options: Options, account: Account) -> int:
    shape = account_shape(account)
    if options.json:
        say_json(shape)
    else:
        facts([(name.replace("_", " "), value) for name, value in shape.items()])
    return exits.OK
