"""What a courier does, one transaction each: fan out what has ended, claim what is due, report what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from duly.application.fan_out import FanOut
from duly.application.webhooks import disable
from duly.domain.instants import Instant
from duly.domain.webhooks.calls import Calls
from duly.domain.webhooks.deliveries import (
    DEFAULT_PACE,
    GIVEN_UP,
    Answer,
    Attempt,
    DeliveryPace,
    Errand,
    after,
)
from duly.domain.webhooks.endpoints import GONE, Endpoint
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction
from duly.ports.webhooks import Wording

_DISABLED = "the webhook is disabled"


@dataclass(frozen=True, slots=True)
class Deliveries:
    storage: Storage
    dice: Dice
    wording: Wording
    pace: DeliveryPace = DEFAULT_PACE

    async def next_at(self) -> tuple[bool, Instant | None]:
        """Whether anybody may ever want to be told, and when the next delivery is due."""

        async def work(tx: Transaction) -> tuple[bool, Instant | None]:
            has_work = await tx.webhooks.has_work()
            return has_work, await tx.webhooks.next_at() if has_work else None

        return await self.storage.read(work)

    async def fan_out(self) -> bool:
        """Makes events and deliveries of what has ended; answers whether there may be more."""
        return await self._fan_out.some()

    async def look_again(self) -> None:
        """At what was set aside; to be done once, when a courier starts."""
        await self._fan_out.look_again()

    @property
    def _fan_out(self) -> FanOut:
        return FanOut(self.storage, self.dice, self.wording, self.pace)

    async def claim(self, most: int, *, under_way: Sequence[Endpoint] = ()) -> list[Errand]:
        """The next deliveries, which nobody else gets until the lease is over, beside calls that are under way."""
        now, claim = self.storage.clock.now(), self.dice.new_id("clm")

        is_again = False

        async def work(tx: Transaction) -> list[Errand]:
            nonlocal is_again
            # An earlier run of this work, whose answer was lost, may have claimed them.
            held = await tx.webhooks.held(claim) if is_again else []
            is_again = True
            if held:
                return held
            calls = Calls(most + len(under_way), under_way)
            due = await tx.webhooks.due(now, most, claim=claim)
            errands = [errand for errand in due if await self._join(tx, calls, errand, now)]
            if len(due) == most > len(errands):
                errands += await self._one_of_each_in_turn(tx, calls, claim, now)
            return errands

        return await self.storage.transact(work)

    async def _one_of_each_in_turn(self, tx: Transaction, calls: Calls, claim: str, now: Instant) -> list[Errand]:
        """When those who have enough stand in front of those who have not."""
        errands: list[Errand] = []
        waiting = await tx.webhooks.endpoints_due(now)
        while calls.free > 0 and (waiting := [each for each in waiting if calls.may_join(each)]):
            endpoint = min(waiting, key=calls.rank)
            errand = await tx.webhooks.next_due_of(endpoint, now, claim=claim)
            if errand is not None and await self._join(tx, calls, errand, now):
                errands.append(errand)
            else:
                waiting.remove(endpoint)
        return errands

    async def _join(self, tx: Transaction, calls: Calls, errand: Errand, now: Instant) -> bool:
        if not calls.may_join(errand.endpoint) or not await self._take(tx, errand, now):
            return False
        calls.join(errand.endpoint)
        return True

    async def _take(self, tx: Transaction, errand: Errand, now: Instant) -> bool:
        """Whether it may be sent now; if not, it waits, or has failed."""
        delivery, endpoint = errand.delivery, errand.endpoint
        if not endpoint.is_enabled or delivery.give_up_at <= now:
            await tx.webhooks.fail(delivery.id, error=GIVEN_UP if endpoint.is_enabled else _DISABLED, now=now)
            return False
        until = Instant(now + self.pace.lease)
        breaker = await tx.webhooks.breaker(endpoint)
        if breaker.is_open(now) and breaker.open_until is not None:
            await tx.webhooks.postpone(delivery.id, until=breaker.open_until)
            return False
        await tx.webhooks.claim(delivery.id, errand.claim, until=until)
        if breaker.is_half_open(now):
            await tx.webhooks.save_breaker(endpoint, breaker.probed_by(delivery.id, until=until))
            await tx.webhooks.postpone_host(endpoint, until=until)
        return True

    async def report(self, errand: Errand, answer: Answer) -> bool:
        """What a try met; nothing is written if the claim was lost. Answers whether it was good."""
        now, fraction = self.storage.clock.now(), self.dice.fraction()
        tried = after(errand.delivery, answer, now=now, fraction=fraction, pace=self.pace)
        attempt = Attempt(
            number=tried.attempts,
            at=now,
            ms=answer.ms,
            status=answer.status,
            error=answer.error,
            excerpt=answer.excerpt,
        )

        async def work(tx: Transaction) -> bool:
            if not await tx.webhooks.report(tried, errand.claim):
                return False
            await tx.webhooks.add_attempt(tried.id, attempt)
            await self._judge_host(tx, errand, answer, now)
            if answer.is_gone:
                endpoint = await tx.webhooks.lock(errand.endpoint.id)
                if endpoint is not None and endpoint.is_enabled:
                    await disable(tx, endpoint, reason=GONE, now=now)
            return True

        return await self.storage.transact(work)

    async def _judge_host(self, tx: Transaction, errand: Errand, answer: Answer, now: Instant) -> None:
        if answer.is_unwell:
            await tx.webhooks.note_host(errand.endpoint)
        was = await tx.webhooks.breaker(errand.endpoint)
        breaker = was.after(errand.delivery.id, answer, now=now, pace=self.pace)
        if breaker == was:
            return
        await tx.webhooks.save_breaker(errand.endpoint, breaker)
        if breaker.open_until is not None:
            await tx.webhooks.postpone_host(errand.endpoint, until=breaker.open_until)
