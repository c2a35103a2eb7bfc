"""Money of a run: held before it, receipted while it goes on, settled or released after it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from duly.application.accounts import account_id_of, account_in
from duly.domain.amounts import Amount, amount_of
from duly.domain.billing import (
    HOLD_LEASE,
    Hold,
    HoldDiffers,
    HoldEnded,
    HoldState,
    InsufficientCredit,
    Receipt,
    ReceiptDiffers,
    UnknownAccount,
    UnknownHold,
    Usage,
    attempt_of,
    reference_of,
    run_id_of,
    unit_of,
)
from duly.domain.ids import Owner, ScheduleId, VirtualKeyId
from duly.domain.instants import Instant, Micros
from duly.domain.schedules import LONGEST_ID, UnknownSchedule
from duly.domain.texts import text_of, whole_number_of
from duly.ports.dice import Dice
from duly.ports.prices import Prices
from duly.ports.storage import Storage, Transaction

LAPSED_AT_ONCE = 100
LONGEST_LEASE = Micros(86_400_000_000)
_MOST_LISTED = 1_000
# Filled in by the store, which knows the account's default key.
_DEFAULT_KEY = VirtualKeyId("")


@dataclass(frozen=True, slots=True)
class Money:
    """For the service that executes graphs; whose account it is, a grant has said."""

    storage: Storage
    dice: Dice
    prices: Prices

    async def hold(
        self,
        run_id: str,
        attempt: int,
        *,
        account_id: str,
        amount: int,
        schedule_id: str | None = None,
        user: str | None = None,
        lease: Micros = HOLD_LEASE,
    ) -> Hold:
        """Reserves the amount, as `hold_in` does."""
        wanted = self.wanted(
            run_id, attempt, account_id=account_id, amount=amount, schedule_id=schedule_id, lease=lease
        )
        return await self.storage.transact(lambda tx: hold_in(tx, wanted, user=user))

    def wanted(
        self,
        run_id: str,
        attempt: int,
        *,
        account_id: str,
        amount: int,
        schedule_id: str | None,
        lease: Micros,
    ) -> Hold:
        """A hold to be asked for.

        An amount of nothing is for runs that cost nothing: it always passes, and their receipts have a place.
        """
        clock = self.storage.clock
        whole_number_of(lease, field="lease", least=1, most=LONGEST_LEASE)
        schedule = None if schedule_id is None else text_of(schedule_id, field="schedule_id", longest=LONGEST_ID)
        now = clock.now()
        return Hold(
            run_id=run_id_of(run_id),
            attempt=attempt_of(attempt),
            account_id=account_id_of(account_id),
            virtual_key_id=_DEFAULT_KEY,
            schedule_id=None if schedule is None else ScheduleId(schedule),
            amount=amount_of(amount),
            era=clock.era,
            expires_at=Micros(clock.lease_now() + lease),
            held_at=now,
            counted_at=now,
        )

    async def renew(self, run_id: str, attempt: int, *, lease: Micros = HOLD_LEASE) -> Hold:
        """Whoever holds it is still there; raises HoldEnded if it was given up for lost."""
        clock = self.storage.clock
        whole_number_of(lease, field="lease", least=1, most=LONGEST_LEASE)
        era, expires_at = clock.era, Micros(clock.lease_now() + lease)

        async def work(tx: Transaction) -> Hold:
            hold = await _locked(tx, run_id, attempt)
            if not hold.is_open:
                raise HoldEnded(hold)
            await tx.holds.renew(hold, era=era, expires_at=expires_at)
            return replace(hold, era=era, expires_at=expires_at)

        return await self.storage.transact(work)

    async def receipt(
        self, run_id: str, attempt: int, unit: str, *, usage: Usage | None = None, amount: int | None = None
    ) -> Receipt:
        """Writes down what a unit has cost, also when its hold has ended: that money is gone.

        Without an amount the usage is priced; without either, or without a known price, it is unmetered. The same again
        answers the same receipt; other figures under its reference are refused.
        """
        reference = reference_of(run_id_of(run_id), attempt_of(attempt), unit_of(unit))
        told = None if amount is None else amount_of(amount)
        now, receipt_id = self.storage.clock.now(), self.dice.new_id("rct")

        async def work(tx: Transaction) -> Receipt:
            hold = await _locked(tx, run_id, attempt)
            price, words = await self._price(tx, hold, usage if told is None else None, now)
            receipt = Receipt(
                id=receipt_id,
                account_id=hold.account_id,
                virtual_key_id=hold.virtual_key_id,
                run_id=run_id,
                attempt=attempt,
                unit=unit,
                usage=usage,
                amount=price if told is None else told,
                created_at=now,
                price=words,
            )
            if not await tx.holds.add_receipt(receipt):
                return _same(await tx.holds.receipt(reference), receipt, priced=told is None and usage is not None)
            await _spent(tx, hold, receipt)
            return receipt

        return await self.storage.transact(work)

    async def _price(
        self, tx: Transaction, hold: Hold, usage: Usage | None, now: Instant
    ) -> tuple[Amount | None, str | None]:
        """What it costs, and which price that is; neither if nobody knows."""
        if usage is None:
            return None, None
        currency = (await account_in(tx, hold.account_id, None)).currency
        price = self.prices.price(usage, currency=currency, at=now)
        return price, None if price is None else self.prices.words(usage, currency=currency, at=now)

    async def settle(self, run_id: str, attempt: int) -> Hold:
        """Charges what its receipts say and gives the rest back; the first end of a hold stands."""
        now = self.storage.clock.now()
        return await self.storage.transact(lambda tx: end_in(tx, run_id, attempt, HoldState.SETTLED, now=now))

    async def release(self, run_id: str, attempt: int) -> Hold:
        """Gives everything back; if something was spent after all, settles. The first end of a hold stands."""
        now = self.storage.clock.now()
        return await self.storage.transact(lambda tx: end_in(tx, run_id, attempt, HoldState.RELEASED, now=now))

    async def lapse_due(self, *, most: int = LAPSED_AT_ONCE) -> Sequence[Hold]:
        """Settles holds whose lease has run out, one in each transaction; answers those it ended."""
        clock = self.storage.clock
        era, lease_now, now = clock.era, clock.lease_now(), clock.now()
        due = await self.storage.read(lambda tx: tx.holds.run_out(era=era, lease_now=lease_now, most=most))
        lapsed = []
        for candidate in due:
            earlier: list[Hold] = []

            async def work(tx: Transaction, candidate: Hold = candidate, earlier: list[Hold] = earlier) -> Hold | None:
                hold = await _locked(tx, candidate.run_id, candidate.attempt)
                if hold in earlier:
                    return hold  # run again after a lost answer
                if not hold.is_open or not hold.has_run_out(era=era, lease_now=lease_now):
                    return None
                earlier[:] = [await end_in(tx, hold.run_id, hold.attempt, HoldState.LAPSED, now=now)]
                return earlier[0]

            if (hold := await self.storage.transact(work)) is not None:
                lapsed.append(hold)
        return lapsed

    async def lapse_some(self) -> bool:
        """As `lapse_due`, for whoever looks now and then; answers whether there may be more."""
        return len(await self.lapse_due(most=LAPSED_AT_ONCE)) == LAPSED_AT_ONCE

    async def get(self, run_id: str, attempt: int, *, owner: str | None) -> Hold:
        async def work(tx: Transaction) -> Hold:
            hold = await tx.holds.get(run_id_of(run_id), attempt_of(attempt))
            if hold is None:
                raise UnknownHold(run_id, attempt)
            try:
                await account_in(tx, hold.account_id, owner)
            except UnknownAccount:
                raise UnknownHold(run_id, attempt) from None
            return hold

        return await self.storage.read(work)

    async def held(self, account_id: str, *, owner: str | None, most: int = 100) -> Sequence[Hold]:
        """What an account's money is held for, newest first."""
        known = account_id_of(account_id)
        whole_number_of(most, field="most", least=1, most=_MOST_LISTED)

        async def work(tx: Transaction) -> Sequence[Hold]:
            await account_in(tx, known, owner)
            return await tx.holds.open_of(known, most=most)

        return await self.storage.read(work)


async def hold_in(tx: Transaction, wanted: Hold, *, user: str | None, beyond_budgets: bool = False) -> Hold:
    """Reserves its amount, or raises InsufficientCredit or OverBudget; asked again, it answers the same hold.

    The schedule, whose budgets count it, is the account's owner's, or that of the `user` whom a grant names.
    `beyond_budgets` is for a run that a person let go beyond those that ask; the others still count.
    """
    added = await tx.holds.add(wanted)
    if added is None:
        return await _found(tx, wanted)
    hold, whose = added
    await _require_own_schedule(tx, hold, whose, user)
    return await _reserved(tx, hold, beyond=beyond_budgets)


async def end_in(tx: Transaction, run_id: str, attempt: int, state: HoldState, *, now: Instant) -> Hold:
    """Ends a hold in somebody's transaction, so that it ends with what it was for."""
    hold = await tx.holds.end(run_id_of(run_id), attempt_of(attempt), state, now=now)
    if hold is None:
        return await _locked(tx, run_id, attempt)
    if hold.amount or hold.spent:
        await tx.accounts.move(hold.account_id, held=-hold.amount, used=hold.spent)
    if hold.spent != hold.amount:
        await tx.budgets.adjust(hold, hold.spent - hold.amount)
    return hold


async def _found(tx: Transaction, wanted: Hold) -> Hold:
    hold = await tx.holds.lock(wanted.run_id, wanted.attempt)
    if hold is None:
        raise UnknownAccount(wanted.account_id)
    if (hold.account_id, hold.schedule_id, hold.amount) != (wanted.account_id, wanted.schedule_id, wanted.amount):
        raise HoldDiffers(hold)
    if not hold.is_open:
        raise HoldEnded(hold)
    return hold


async def _require_own_schedule(tx: Transaction, hold: Hold, whose: Owner | None, user: str | None) -> None:
    """Nobody uses up somebody else's budget. A tombstone will do: its last runs may still go on."""
    if hold.schedule_id is None:
        return
    owner = (await account_in(tx, hold.account_id, None)).owner if user is None else user
    if whose != owner:
        raise UnknownSchedule(hold.schedule_id)


async def _reserved(tx: Transaction, hold: Hold, *, beyond: bool) -> Hold:
    # Runs that cost nothing do not queue for their account's row.
    if hold.amount and not await tx.accounts.reserve(hold.account_id, hold.amount):
        account = await account_in(tx, hold.account_id, None)
        raise InsufficientCredit(account.id, needed=hold.amount, available=account.balance.available)
    counted_at = hold.held_at
    for budget in await tx.budgets.covering(hold):
        counted = budget.at(hold.held_at).holding(hold.amount, approved=beyond)
        await tx.budgets.count(counted)
        counted_at = max(counted_at, counted.window_start)
    if counted_at != hold.counted_at:
        await tx.holds.count_at(hold, counted_at)
    return replace(hold, counted_at=counted_at)


async def _spent(tx: Transaction, hold: Hold, receipt: Receipt) -> None:
    await tx.holds.spend(hold, receipt)
    if not hold.is_open and receipt.amount:
        await tx.accounts.move(hold.account_id, used=receipt.amount)
        await tx.budgets.adjust(hold, receipt.amount)


async def _locked(tx: Transaction, run_id: str, attempt: int) -> Hold:
    hold = await tx.holds.lock(run_id_of(run_id), attempt_of(attempt))
    if hold is None:
        raise UnknownHold(run_id, attempt)
    return hold


def _same(known: Receipt | None, asked: Receipt, *, priced: bool) -> Receipt:
    """A price that was worked out is not compared: tables change, and the first one stands."""
    if known is None or known.usage != asked.usage or (known.amount != asked.amount and not priced):
        raise ReceiptDiffers(asked.source_reference)
    return known
