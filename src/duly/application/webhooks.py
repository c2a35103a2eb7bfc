"""What callers do with webhooks: make, change, rotate, test, look at deliveries and send them again."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner
from duly.domain.instants import SECOND, Instant, written
from duly.domain.texts import text_of, whole_number_of
from duly.domain.webhooks.addresses import AddressRule
from duly.domain.webhooks.deliveries import (
    DEFAULT_PACE,
    Attempt,
    Delivery,
    DeliveryPace,
    DeliveryState,
    UnknownDelivery,
)
from duly.domain.webhooks.endpoints import (
    LONGEST_ROTATION_S,
    MOST_ENDPOINTS,
    ROTATION,
    Endpoint,
    EndpointDisabled,
    EndpointExists,
    TooManyEndpoints,
    UnknownEndpoint,
)
from duly.domain.webhooks.events import TEST, Event, patterns_of
from duly.domain.webhooks.signing import secret_from
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction

MOST_LISTED = 1_000
PRUNE_BATCH = 500


@dataclass(frozen=True, slots=True)
class EndpointBook:
    """Makes endpoints: for callers, and for templates and groups that name an address."""

    dice: Dice
    rule: AddressRule

    def drawn(
        self,
        url: str,
        *,
        owner: Owner,
        now: Instant,
        field: str,
        events: tuple[str, ...] = (),
        everything: bool = False,
        note: str = "",
    ) -> Endpoint:
        target = self.rule.target_of(url, field=field)
        return Endpoint(
            id=self.dice.new_id("whe"),
            owner=owner,
            url=target.url,
            host=f"{target.host}:{target.port}",
            events=events,
            everything=everything,
            note=note,
            secret=secret_from(self.dice.secret()),
            created_at=now,
            updated_at=now,
        )

    def named(self, url: str | None, *, owner: Owner, now: Instant) -> Endpoint | None:
        """For an address that a template or a group names; it is subscribed to nothing else."""
        return None if url is None else self.drawn(url, owner=owner, now=now, field="webhook_url")


async def add_endpoint(tx: Transaction, endpoint: Endpoint | None) -> Endpoint | None:
    """The one that its owner has at that address: this one, or one that was there."""
    if endpoint is None:
        return None
    found = await tx.webhooks.at(endpoint.owner, endpoint.url)
    if found is not None:
        return found
    if await tx.webhooks.count(endpoint.owner) >= MOST_ENDPOINTS:
        raise TooManyEndpoints
    return await tx.webhooks.add(endpoint)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """`owner` is the caller; an operator names none."""

    storage: Storage
    dice: Dice
    rule: AddressRule
    pace: DeliveryPace = DEFAULT_PACE

    async def create(
        self,
        url: str,
        *,
        owner: str,
        events: Iterable[str] = ("*",),
        everything: bool = False,
        note: str = "",
        endpoint_id: str | None = None,
    ) -> tuple[Endpoint, str]:
        """The endpoint and its secret, which nobody can show again. `everything` is for admins to ask for.

        An id makes it repeatable.
        """
        drawn = EndpointBook(self.dice, self.rule).drawn(
            url,
            owner=Owner(text_of(owner, field="owner")),
            now=self.storage.clock.now(),
            field="url",
            events=patterns_of(events),
            everything=everything,
            note=_note_of(note),
        )
        if endpoint_id is not None:
            drawn = replace(drawn, id=text_of(endpoint_id, field="endpoint_id"))

        async def work(tx: Transaction) -> Endpoint:
            made = await add_endpoint(tx, drawn)
            if made is None or made.id != drawn.id:
                raise EndpointExists(drawn.id if made is None else made.id)
            return made

        made = await self.storage.transact(work)
        return made, made.secret

    async def get(self, endpoint_id: str, *, owner: str | None) -> Endpoint:
        async def work(tx: Transaction) -> Endpoint:
            return _known(await tx.webhooks.get(text_of(endpoint_id, field="id")), endpoint_id, owner)

        return await self.storage.read(work)

    async def list(self, *, owner: str | None, after: str | None = None, most: int = 100) -> Sequence[Endpoint]:
        """In order of id; `after` is the last one seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)

        async def work(tx: Transaction) -> Sequence[Endpoint]:
            return await tx.webhooks.listed(_whose(owner), after=after, most=most)

        return await self.storage.read(work)

    async def update(
        self, endpoint_id: str, *, owner: str | None, events: Iterable[str] | None = None, note: str | None = None
    ) -> Endpoint:
        """What is left out stays. Another address is another endpoint, with another secret."""
        asked = None if events is None else patterns_of(events)

        def changed(endpoint: Endpoint, now: Instant) -> Endpoint:
            return replace(
                endpoint,
                events=endpoint.events if asked is None else asked,
                note=endpoint.note if note is None else _note_of(note),
                updated_at=now,
            )

        return await self._change(endpoint_id, owner, changed)

    async def rotate(
        self, endpoint_id: str, *, owner: str | None, keep_old_s: int = ROTATION // SECOND
    ) -> tuple[Endpoint, str]:
        """A new secret, shown this once; the old one signs beside it for a while, so that no receiver misses a call."""
        whole_number_of(keep_old_s, field="keep_old_s", least=0, most=LONGEST_ROTATION_S)
        secret = secret_from(self.dice.secret())

        def rotated(endpoint: Endpoint, now: Instant) -> Endpoint:
            if endpoint.secret == secret:
                return endpoint  # run again after a lost answer
            until = Instant(now + keep_old_s * SECOND)
            return replace(endpoint, secret=secret, old_secret=endpoint.secret, old_secret_until=until, updated_at=now)

        return await self._change(endpoint_id, owner, rotated), secret

    async def disable(self, endpoint_id: str, *, owner: str | None, reason: str = "disabled by its owner") -> Endpoint:
        """Nothing is sent there any more; what waited has failed, and can be sent again once it is enabled."""
        why = text_of(reason, field="reason")

        async def work(tx: Transaction) -> Endpoint:
            endpoint = await _locked(tx, endpoint_id, owner)
            return await disable(tx, endpoint, reason=why, now=now) if endpoint.is_enabled else endpoint

        now = self.storage.clock.now()
        return await self.storage.transact(work)

    async def enable(self, endpoint_id: str, *, owner: str | None) -> Endpoint:
        return await self._change(
            endpoint_id,
            owner,
            lambda endpoint, now: replace(endpoint, disabled_at=None, disabled_reason=None, updated_at=now),
        )

    async def delete(self, endpoint_id: str, *, owner: str | None) -> None:
        """With the log of its deliveries."""
        is_found = False

        async def work(tx: Transaction) -> None:
            nonlocal is_found
            endpoint = await tx.webhooks.lock(text_of(endpoint_id, field="id"))
            # An earlier run of this work, whose answer was lost, may have deleted it.
            if is_found and endpoint is None:
                return
            known = _known(endpoint, endpoint_id, owner)
            is_found = True
            await tx.webhooks.delete(known)

        await self.storage.transact(work)

    async def test(self, endpoint_id: str, *, owner: str | None) -> Delivery:
        """A delivery that says nothing, to see whether it arrives."""
        now = self.storage.clock.now()
        event_id, delivery_id = self.dice.new_id("evt"), self.dice.new_id("dlv")

        async def work(tx: Transaction) -> Delivery:
            endpoint = _enabled(await _locked(tx, endpoint_id, owner))
            body = {"type": TEST, "timestamp": written(now), "data": {"webhook_id": endpoint.id}}
            event = Event(
                id=event_id,
                type=TEST,
                owner=endpoint.owner,
                subject_id=endpoint.id,
                occurred_at=now,
                body=json.dumps(body, separators=(",", ":")),
            )
            await tx.webhooks.tell(event, [(delivery_id, endpoint.id)], now=now, give_up=self._give_up(now))
            return _known_delivery(await tx.webhooks.delivery(delivery_id), delivery_id, None)

        return await self.storage.transact(work)

    async def deliveries(
        self,
        *,
        owner: str | None,
        endpoint_id: str | None = None,
        about: str | None = None,
        state: DeliveryState | str | None = None,
        before: str | None = None,
        most: int = 100,
    ) -> Sequence[Delivery]:
        """The newest first; `about` is the id of a job, a group or a run, `before` the last one seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        asked = None if state is None else _state_of(state)

        async def work(tx: Transaction) -> Sequence[Delivery]:
            return await tx.webhooks.deliveries(
                _whose(owner), endpoint_id=endpoint_id, subject_id=about, state=asked, before=before, most=most
            )

        return await self.storage.read(work)

    async def delivery(self, delivery_id: str, *, owner: str | None) -> tuple[Delivery, Sequence[Attempt]]:
        async def work(tx: Transaction) -> tuple[Delivery, Sequence[Attempt]]:
            text_of(delivery_id, field="id")
            found = _known_delivery(await tx.webhooks.delivery(delivery_id), delivery_id, owner)
            return found, await tx.webhooks.attempts(found.id)

        return await self.storage.read(work)

    async def resend(self, delivery_id: str, *, owner: str | None) -> Delivery:
        """Tried anew, under the same id and with all its tries, whatever became of it; one that waits is sent now."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Delivery:
            text_of(delivery_id, field="id")
            found = _known_delivery(await tx.webhooks.delivery(delivery_id, locked=True), delivery_id, owner)
            _enabled(_known(await tx.webhooks.get(found.endpoint_id), found.endpoint_id, None))
            await tx.webhooks.send_again(found.id, now=now, give_up=self._give_up(now))
            return _known_delivery(await tx.webhooks.delivery(found.id), found.id, None)

        return await self.storage.transact(work)

    async def prune(self, *, before: Instant) -> int:
        """Forgets deliveries that ended before; those that are under way stay."""
        count = 0

        async def work(tx: Transaction) -> int:
            return await tx.webhooks.prune(before, PRUNE_BATCH)

        while pruned := await self.storage.transact(work):
            count += pruned
        return count

    async def set_aside(self) -> tuple[int, str | None]:
        """How many ends no courier could read, and why one of them; for operators."""
        return await self.storage.read(lambda tx: tx.webhooks.aside())

    async def _change(
        self, endpoint_id: str, owner: str | None, change: Callable[[Endpoint, Instant], Endpoint]
    ) -> Endpoint:
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> Endpoint:
            changed = change(await _locked(tx, endpoint_id, owner), now)
            await tx.webhooks.save(changed)
            return changed

        return await self.storage.transact(work)

    def _give_up(self, now: Instant) -> Instant:
        return Instant(now + self.pace.give_up_after)


async def disable(tx: Transaction, endpoint: Endpoint, *, reason: str, now: Instant) -> Endpoint:
    disabled = replace(endpoint, disabled_at=now, disabled_reason=reason, updated_at=now)
    await tx.webhooks.save(disabled)
    await tx.webhooks.fail_all_of(endpoint.id, error=f"the webhook was disabled: {reason}", now=now)
    return disabled


async def _locked(tx: Transaction, endpoint_id: str, owner: str | None) -> Endpoint:
    return _known(await tx.webhooks.lock(text_of(endpoint_id, field="id")), endpoint_id, owner)


def _known(endpoint: Endpoint | None, endpoint_id: str, owner: str | None) -> Endpoint:
    if endpoint is None or owner not in (None, endpoint.owner):
        raise UnknownEndpoint(endpoint_id)
    return endpoint


def _enabled(endpoint: Endpoint) -> Endpoint:
    if not endpoint.is_enabled:
        raise EndpointDisabled(endpoint.id)
    return endpoint


def _known_delivery(delivery: Delivery | None, delivery_id: str, owner: str | None) -> Delivery:
    if delivery is None or owner not in (None, delivery.owner):
        raise UnknownDelivery(delivery_id)
    return delivery


def _whose(owner: str | None) -> Owner | None:
    return None if owner is None else Owner(text_of(owner, field="owner"))


def _state_of(state: str) -> DeliveryState:
    try:
        return DeliveryState(state)
    except ValueError:
        raise InvalidInput("state", f"{state[:40]!r} is no state", fix=f"use {', '.join(DeliveryState)}") from None


def _note_of(note: str) -> str:
    return note if note == "" else text_of(note, field="note")
