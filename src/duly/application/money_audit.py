"""Proves from credits, holds and receipts that every account is what it says: reads, and writes nothing."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from duly.domain.billing import HOLD_LEASE, Account, MoneyVerdict, findings_of
from duly.domain.ids import Owner
from duly.domain.instants import Instant, Micros
from duly.ports.storage import ReadOnlyStorage, Transaction

ACCOUNTS_AT_ONCE = 50
MOST_FOUND = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyAudit:
    """Accounts are judged by one snapshot each page; `grace` is how long a hold may outlive its lease."""

    storage: ReadOnlyStorage
    grace: Micros = HOLD_LEASE

    async def verdicts(self, *, owner: str | None = None) -> AsyncIterator[MoneyVerdict]:
        """Of every account, in order of their ids; an `owner` is told of its own alone."""
        after = ""
        while page := await self._page(None if owner is None else Owner(owner), after):
            for verdict in page:
                yield verdict
            after = page[-1].account.id

    async def report(self, *, owner: str | None = None) -> dict[str, Any]:
        """Everything as JSON shapes: each account with its findings, and whether the laws hold."""
        accounts = [_object(verdict) async for verdict in self.verdicts(owner=owner)]
        found: dict[str, int] = {}
        for account in accounts:
            for finding in account["findings"]:
                found[finding["law"]] = found.get(finding["law"], 0) + 1
        return {"accounts": accounts, "totals": {"count": len(accounts), "found": found, "laws_hold": not found}}

    async def _page(self, owner: Owner | None, after: str) -> list[MoneyVerdict]:
        clock = self.storage.clock
        era = clock.era
        lease_before, held_before = Micros(clock.lease_now() - self.grace), Instant(clock.now() - self.grace)

        async def work(tx: Transaction) -> list[MoneyVerdict]:
            verdicts = []
            for recorded in await tx.money_audit.recorded(owner, after=after, most=ACCOUNTS_AT_ONCE):
                account_id = recorded.account.id
                findings = (
                    *findings_of(recorded),
                    *await tx.money_audit.discrepancies(account_id, most=MOST_FOUND),
                    *await tx.money_audit.orphans(
                        account_id, era=era, lease_before=lease_before, held_before=held_before, most=MOST_FOUND
                    ),
                )
                verdicts.append(MoneyVerdict(account=recorded.account, findings=findings))
            return verdicts

        return await self.storage.read(work)


def _object(verdict: MoneyVerdict) -> dict[str, Any]:
    return {
        "account": verdict.account.id,
        **_figures(verdict.account),
        "findings": [{"law": finding.law.value, "text": finding.text} for finding in verdict.findings],
    }


def _figures(account: Account) -> dict[str, Any]:
    balance = account.balance
    return {
        "currency": account.currency,
        "granted": balance.granted,
        "available": balance.available,
        "held": balance.held,
        "charged": balance.charged,
        "overrun": balance.overrun,
    }
