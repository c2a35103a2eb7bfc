"""`duly account`: who pays. Opening one, adding credit, and what was spent."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import is_dry_run
from duly.cli.listing import WHOLE, Listing, add_page, show_list
from duly.cli.money_shapes import account_shape, statement_shape
from duly.cli.output import note, say_json, table, tell
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_most
from duly.cli.shapes import at
from duly.cli.store import changing, looking
from duly.domain.amounts import parse_amount, written_amount
from duly.domain.billing import Account, Credit, currency_of
from duly.domain.errors import InvalidInput
from duly.domain.instants import Instant
from duly.domain.texts import text_of

if TYPE_CHECKING:
    from duly.application.accounts import Line
    from duly.bootstrap import Queue

_MOST_DIGITS = 18


def define(parser: Parser) -> None:
    commands = Commands(parser)
    add_ = commands.add("add", add, "open one, with nothing in it", once="create")
    add_.add_argument("name", metavar="NAME")
    add_.add_argument("--owner", default="local", metavar="NAME", help="whose it is (default: local)")
    add_.add_argument("--currency", default="USD", metavar="CODE", help="three capitals (default: USD)")
    listed = commands.add("list", list_all, "all of them")
    listed.add_argument("--owner", metavar="NAME", help="only those of one owner")
    add_page(listed, "ACCOUNT", most=WHOLE)
    show_ = commands.add("show", show, "one of them")
    statement_ = commands.add("statement", statement, "what came in and what was spent, newest first")
    statement_.add_argument("--after", metavar="CURSOR", help="the lines that follow, as the page before says")
    add_most(statement_, 50)
    credit_ = commands.add("credit", credit, "add money to it")
    for command in (show_, statement_, credit_):
        command.add_argument("id", metavar="ACCOUNT")
    credit_.add_argument("amount", metavar="AMOUNT", help="such as 5.00, in the account's currency")
    credit_.add_argument("--key", required=True, metavar="TEXT", help="the same key again adds nothing")
    for command in (add_, credit_):
        add_dry_run(command)
    for command in (add_, show_, statement_, credit_):
        add_json(command)


def add(options: Options) -> int:
    text_of(options.owner, field="--owner")
    currency_of(options.currency)

    async def change(queue: "Queue") -> int:
        if is_dry_run(options, f"open an account {options.name} of {options.owner}"):
            return exits.OK
        made = await queue.accounts.create(owner=options.owner, name=options.name, currency=options.currency)
        tell(options, lambda: account_shape(made))
        return exits.OK

    return changing(change, creates=not options.dry_run)


def list_all(options: Options) -> None:
    show_list(
        options,
        _LISTING,
        lambda queue: queue.accounts.list(owner=options.owner, after=options.after, most=options.most),
    )


def _row(account: Account) -> tuple[object, ...]:
    balance = account.balance
    amounts = (balance.available, balance.held, balance.charged, balance.overrun)
    return (account.id, account.owner, account.name, account.currency, *map(written_amount, amounts))


_LISTING: Listing[Account] = Listing(
    heads=("id", "owner", "name", "currency", "available", "held", "charged", "overrun"),
    row=_row,
    shape=account_shape,
    key=lambda account: account.id,
    empty="no accounts; open one: duly account add NAME",
)


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        account = await queue.accounts.get(options.id, owner=None)
        tell(options, lambda: account_shape(account))

    looking(look)


def statement(options: Options) -> int:
    before = _before(options.after)

    async def look(queue: "Queue") -> int:
        told = await queue.accounts.statement(options.id, owner=None, before=before, most=options.most)
        following = None if told.before is None else ":".join(map(str, told.before))
        if options.json:
            say_json(statement_shape(told, following))
            return exits.OK
        heads = ("at", "kind", "amount", "model", "tokens in", "tokens out", "reference")
        table(heads, [_line(line) for line in told.lines], empty="nothing came in, and nothing was spent")
        if told.unmetered:
            note(f"{told.unmetered} receipts have no amount: nobody knows what they cost")
        if following is not None:
            note(f"there may be more: --after {following}")
        return exits.OK

    return looking(look)


def _before(cursor: str | None) -> tuple[Instant, str] | None:
    if cursor is None:
        return None
    moment, _, line_id = cursor.partition(":")
    if not (moment.isascii() and moment.isdigit() and len(moment) <= _MOST_DIGITS and line_id):
        raise InvalidInput("--after", f"{cursor[:40]!r} is no cursor", fix="write what the page before said")
    return Instant(int(moment)), line_id


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
        account = await queue.accounts.get(options.id, owner=None)
        if is_dry_run(options, f"add {written_amount(amount)} {account.currency} to {account.id}"):
            return exits.OK
        credited = await queue.accounts.credit(account.id, amount=amount, key=options.key)
        tell(options, lambda: account_shape(credited))
        return exits.OK

    return changing(change)
