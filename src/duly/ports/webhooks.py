"""What webhooks ask of a store, and of whoever sends them."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.webhooks.deliveries import Answer, Attempt, Breaker, Delivery, DeliveryState, Errand
from duly.domain.webhooks.endpoints import Endpoint
from duly.domain.webhooks.events import Ended, Event, Unreadable


class WebhookStore(Protocol):
    async def add(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint that its owner has at that address now: this one, or one that was there."""

    async def get(self, endpoint_id: str) -> Endpoint | None: ...

    async def lock(self, endpoint_id: str) -> Endpoint | None: ...

    async def at(self, owner: Owner, url: str) -> Endpoint | None: ...

    async def count(self, owner: Owner) -> int: ...

    async def listed(self, owner: Owner | None, *, after: str | None, most: int) -> list[Endpoint]: ...

    async def save(self, endpoint: Endpoint) -> None: ...

    async def delete(self, endpoint: Endpoint) -> None:
        """With its deliveries, and with what is known of its host unless its owner has another there."""

    async def listening_to(self, owner: Owner | None) -> list[Endpoint]:
        """Enabled endpoints that may want what things of this owner, or of nobody, tell."""

    async def has_work(self) -> bool:
        """Whether anything may ever be to tell: there is an endpoint, or a row in the outbox."""

    async def next_at(self) -> Instant | None:
        """When the next delivery is due; long ago, if the outbox is not empty."""

    async def ended(self, most: int, *, aside_after: int | None = None) -> list[Ended | Unreadable]:
        """Rows of the outbox, oldest first, or those set aside after one; kept from others until commit."""

    async def set_aside(self, seq: int, *, reason: str, now: Instant) -> None: ...

    async def aside(self) -> tuple[int, str | None]:
        """How many rows are set aside, and why one of them is."""

    async def take(self, seq: int) -> None:
        """Out of the outbox."""

    async def tell(
        self, event: Event, deliveries: Sequence[tuple[str, str]], *, now: Instant, give_up: Instant
    ) -> None:
        """Writes an event and a delivery, (its id, its endpoint's), for each who wants it."""

    async def due(self, now: Instant, most: int, *, claim: str) -> list[Errand]:
        """Deliveries that are due, to be claimed; kept from others until commit."""

    async def endpoints_due(self, now: Instant) -> list[Endpoint]:
        """Those for which a delivery is due, whoever waits longest first."""

    async def next_due_of(self, endpoint: Endpoint, now: Instant, *, claim: str) -> Errand | None:
        """Its oldest delivery that is due; kept from others until commit."""

    async def held(self, claim: str) -> list[Errand]:
        """What this claim has."""

    async def claim(self, delivery_id: str, claim: str, *, until: Instant) -> None: ...

    async def postpone(self, delivery_id: str, *, until: Instant) -> None: ...

    async def postpone_host(self, endpoint: Endpoint, *, until: Instant) -> None: ...

    async def fail(self, delivery_id: str, *, error: str, now: Instant) -> None: ...

    async def fail_all_of(self, endpoint_id: str, *, error: str, now: Instant) -> None: ...

    async def report(self, delivery: Delivery, claim: str) -> bool:
        """Whether the claim was still good; if not, nothing has changed."""

    async def add_attempt(self, delivery_id: str, attempt: Attempt) -> None: ...

    async def attempts(self, delivery_id: str) -> list[Attempt]: ...

    async def delivery(self, delivery_id: str, *, locked: bool = False) -> Delivery | None: ...

    async def deliveries(
        self,
        owner: Owner | None,
        *,
        endpoint_id: str | None,
        subject_id: str | None,
        state: DeliveryState | None,
        before: str | None,
        most: int,
    ) -> list[Delivery]: ...

    async def send_again(self, delivery_id: str, *, now: Instant, give_up: Instant) -> None: ...

    async def breaker(self, endpoint: Endpoint) -> Breaker:
        """Kept from others until commit, if it has one."""

    async def note_host(self, endpoint: Endpoint) -> None:
        """Before a failure is counted: those who count at once take turns."""

    async def save_breaker(self, endpoint: Endpoint, breaker: Breaker) -> None: ...

    async def prune(self, before: Instant, most: int) -> int: ...


class Wording(Protocol):
    """How events are put into words: as the API shows what they are about."""

    def __call__(self, ended: Ended) -> tuple[str, str]:
        """The id of what it is about, and the body."""


class Sender(Protocol):
    async def send(self, errand: Errand) -> Answer:
        """One call, bounded in time and size. What goes wrong is part of the answer."""
