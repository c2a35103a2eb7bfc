"""Makes events and deliveries of what has ended; what it cannot read it sets aside, and goes on with the rest."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from duly.domain.ids import Owner
from duly.domain.instants import Instant, written
from duly.domain.webhooks.deliveries import DEFAULT_PACE, LONGEST_ERROR, DeliveryPace
from duly.domain.webhooks.endpoints import Endpoint
from duly.domain.webhooks.events import Ended, Event, Unreadable
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction
from duly.ports.webhooks import Wording

FAN_OUT_BATCH = 100


@dataclass(frozen=True, slots=True)
class FanOut:
    storage: Storage
    dice: Dice
    wording: Wording
    pace: DeliveryPace = DEFAULT_PACE

    async def some(self) -> bool:
        """Answers whether there may be more."""
        return len(await self._round()) == FAN_OUT_BATCH

    async def look_again(self) -> None:
        """At what is set aside: a newer program may be able to read it."""
        last = 0
        while found := await self._round(aside_after=last):
            last = found[-1]

    async def _round(self, *, aside_after: int | None = None) -> Sequence[int]:
        """The rows that it looked at."""
        now = self.storage.clock.now()
        drawn = [self.dice.new_id("evt") for _ in range(FAN_OUT_BATCH)]

        async def work(tx: Transaction) -> Sequence[int]:
            found = await tx.webhooks.ended(FAN_OUT_BATCH, aside_after=aside_after)
            listening: dict[Owner | None, Sequence[Endpoint]] = {}
            for event_id, each in zip(drawn, found, strict=False):
                if each.owner not in listening:
                    listening[each.owner] = await tx.webhooks.listening_to(each.owner)
                unreadable = await self._tell(tx, event_id, each, listening[each.owner], now)
                if unreadable is None:
                    await tx.webhooks.take(each.seq)
                elif aside_after is None:
                    await self._set_aside(tx, event_id, unreadable, listening[each.owner], now)
            return [each.seq for each in found]

        return await self.storage.transact(work)

    async def _tell(
        self, tx: Transaction, event_id: str, found: Ended | Unreadable, listening: Sequence[Endpoint], now: Instant
    ) -> Unreadable | None:
        """What is wrong with it, if it cannot be told."""
        if isinstance(found, Unreadable):
            return found
        wanting = [each for each in listening if each.wants(found)]
        if not wanting:
            return None
        event = self._worded(event_id, found)
        if isinstance(event, Unreadable):
            return event
        await self._deliver(tx, event, wanting, now)
        return None

    def _worded(self, event_id: str, ended: Ended) -> Event | Unreadable:
        try:
            subject_id, body = self.wording(ended)
            body.encode()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, those behind it can be told
            return Unreadable(
                seq=ended.seq,
                noun=ended.type.partition(".")[0],
                owner=ended.owner,
                url=ended.url,
                occurred_at=ended.occurred_at,
                subject_id=ended.subject.id,
                reason=f"{type(error).__name__}: {error}",
            )
        return Event(
            id=event_id,
            type=ended.type,
            owner=ended.owner,
            subject_id=subject_id,
            occurred_at=ended.occurred_at,
            body=body,
        )

    async def _set_aside(
        self, tx: Transaction, event_id: str, found: Unreadable, listening: Sequence[Endpoint], now: Instant
    ) -> None:
        """With a delivery that has failed for each who may have wanted it: that is where they look for it."""
        reason = _shown(found.reason)
        await tx.webhooks.set_aside(found.seq, reason=reason, now=now)
        known = {"id": found.subject_id, "reason": reason}
        body = {"type": found.type, "timestamp": written(found.occurred_at), "data": known}
        event = Event(
            id=event_id,
            type=found.type,
            owner=found.owner,
            subject_id=found.subject_id,
            occurred_at=found.occurred_at,
            body=json.dumps(body, separators=(",", ":")),
        )
        wanting = [each for each in listening if each.may_want(found)]
        for delivery_id in await self._deliver(tx, event, wanting, now) if wanting else ():
            await tx.webhooks.fail(delivery_id, error=f"cannot be read: {reason}", now=now)

    async def _deliver(self, tx: Transaction, event: Event, wanting: Sequence[Endpoint], now: Instant) -> Sequence[str]:
        # Named by both, so that a rerun names them alike; an event's deliveries sort as their events do.
        drawn = event.id.removeprefix("evt_")
        deliveries = [(f"dlv_{drawn}{place:x}", each.id) for place, each in enumerate(wanting)]
        await tx.webhooks.tell(event, deliveries, now=now, give_up=Instant(now + self.pace.give_up_after))
        return [delivery_id for delivery_id, _ in deliveries]


def _shown(reason: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in reason)[:LONGEST_ERROR]
