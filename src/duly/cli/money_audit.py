"""What `duly audit` says of money: a line for each account, what was found, and the sum of each currency."""

from collections import Counter
from collections.abc import Callable

from duly.application.money_audit import MoneyAudit
from duly.domain.amounts import written_amount
from duly.domain.billing import Balance, MoneyLaw

Sums = Counter[str]


async def money_lines(money: MoneyAudit, tell: Callable[[str], None]) -> str:
    """Says each verdict as it comes; answers which laws were found broken, and how often."""
    found, sums, counts = Counter[MoneyLaw](), dict[str, Sums](), Counter[str]()
    async for verdict in money.verdicts():
        account = verdict.account
        balance = _figures(account.balance)
        tell(_line(account.id, balance, account.currency))
        for finding in verdict.findings:
            tell(f"  {finding}")
            found[finding.law] += 1
        sums.setdefault(account.currency, Counter()).update(balance)
        counts[account.currency] += 1
    for currency, total in sorted(sums.items()):
        many = "1 account" if counts[currency] == 1 else f"{counts[currency]} accounts"
        tell(_line(many, total, currency))
    return ", ".join(f"{found[law]} {law}" for law in MoneyLaw if found[law])


def _figures(balance: Balance) -> Sums:
    names = ("granted", "available", "held", "charged", "overrun")
    return Counter({name: getattr(balance, name) for name in names})


def _line(name: str, sums: Sums, currency: str) -> str:
    parts = " + ".join(f"{written_amount(sums[part])} {part}" for part in ("available", "held", "charged"))
    overrun = f"; {written_amount(sums['overrun'])} overrun" if sums["overrun"] else ""
    return f"{name:<24} {written_amount(sums['granted'])} {currency} granted = {parts}{overrun}"
