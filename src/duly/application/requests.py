"""Executes a request that carries an idempotency key once, and answers its repetitions alike."""

from contextlib import suppress
from dataclasses import dataclass

from duly.domain.errors import Unavailable
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.requests import CLAIM_LEASE, Answer, Claimed, Request
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction

PRUNE_BATCH = 1_000
KEPT_FOR = Micros(86_400 * SECOND)
_FORGET_EVERY = Micros(3_600 * SECOND)


@dataclass(frozen=True, slots=True)
class Requests:
    """`claim` comes before what the request asks for, `answer` or `abandon` after it."""

    storage: Storage
    dice: Dice

    async def claim(self, request: Request) -> Claimed | Answer:
        """The right to execute it, or the answer it had; raises KeyReused, or StillRunning while somebody else does."""
        clock = self.storage.clock
        era, lease_now, now = clock.era, clock.lease_now(), clock.now()
        drawn = Claimed(draw=self._digits(), token=int(self._digits()[-15:], 16))

        async def work(tx: Transaction) -> Claimed | Answer:
            return await tx.requests.claim(request, drawn, lease=CLAIM_LEASE, era=era, lease_now=lease_now, now=now)

        return await self.storage.transact(work)

    def _digits(self) -> str:
        return self.dice.new_id("req").removeprefix("req_")

    async def answer(self, request: Request, claimed: Claimed, answer: Answer) -> None:
        """Keeps the answer for repetitions, unless somebody else has taken over."""

        async def work(tx: Transaction) -> None:
            await tx.requests.answer(request, claimed, answer)

        await self.storage.transact(work)

    async def abandon(self, request: Request, claimed: Claimed) -> None:
        """It came to nothing that is worth repeating: whoever asks next may try at once, with the same draw."""

        async def work(tx: Transaction) -> None:
            await tx.requests.abandon(request, claimed)

        await self.storage.transact(work)

    async def prune(self, *, before: Instant) -> int:
        """Forgets requests last claimed before an instant, a few in each transaction; answers how many.

        One that somebody still executes stays: the time of day may have been set forward.
        """
        pruned = 0
        era, lease_now = self.storage.clock.era, self.storage.clock.lease_now()

        async def work(tx: Transaction) -> int:
            return await tx.requests.prune(before, PRUNE_BATCH, era=era, lease_now=lease_now)

        while forgotten := await self.storage.transact(work):
            pruned += forgotten
        return pruned

    async def keep_forgetting(self) -> None:
        """Forgets what is older than a day, now and then, until cancelled: for whoever serves requests."""
        clock = self.storage.clock
        while True:
            with suppress(Unavailable):
                await self.prune(before=Instant(clock.now() - KEPT_FOR))
            await clock.sleep(_FORGET_EVERY)
