"""Deliveries: how often they are tried, when they are given up, and when a host is left alone."""

from dataclasses import dataclass, replace
from enum import StrEnum

from duly.domain.errors import NotFound
from duly.domain.ids import Owner
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.webhooks.endpoints import Endpoint

LONGEST_EXCERPT = 500
LONGEST_ERROR = 300
GIVEN_UP = "not delivered within a day: its server was left alone for too long"
_GONE = 410
_HALF_A_SECOND = Micros(SECOND // 2)
_HALF_A_MINUTE = Micros(30 * SECOND)
_MINUTE = Micros(60 * SECOND)
_QUARTER_OF_AN_HOUR = Micros(15 * _MINUTE)
_HOUR = Micros(60 * _MINUTE)
_DAY = Micros(24 * _HOUR)


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPace:
    """One try and three more. `lease` is longer than a try may take, whatever its server does."""

    tries: int = 4
    backoff: Micros = _HALF_A_MINUTE
    growth: int = 4
    longest_retry_after: Micros = _HOUR
    give_up_after: Micros = _DAY
    lease: Micros = _MINUTE
    connect_within_s: float = 5.0
    first_byte_within_s: float = 10.0
    all_within_s: float = 20.0
    breaks_after: int = 5
    rest: Micros = _MINUTE
    longest_rest: Micros = _QUARTER_OF_AN_HOUR
    most_at_once: int = 32
    look_every: Micros = _HALF_A_SECOND

    def wait(self, tries: int, fraction: float) -> Micros:
        """After so many tries that failed: half of it for sure, the rest by chance, so that few come back at once."""
        longest = self.backoff * self.growth ** (tries - 1)
        return Micros(int(longest * (0.5 + fraction / 2)))


DEFAULT_PACE = DeliveryPace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event on its way to one endpoint. `tries` counts from the last time it was sent off, `attempts` all."""

    id: str
    event_id: str
    endpoint_id: str
    owner: Owner
    type: str
    subject_id: str
    state: DeliveryState
    tries: int
    attempts: int
    due_at: Instant
    give_up_at: Instant
    status: int | None
    error: str | None
    created_at: Instant
    ended_at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one try met: a status, or an error instead; an excerpt of what was answered."""

    number: int
    at: Instant
    ms: int
    status: int | None = None
    error: str | None = None
    excerpt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server did with a call. `retry_after` is what it asked for."""

    ms: int
    status: int | None = None
    error: str | None = None
    excerpt: str = ""
    retry_after: Micros | None = None

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        return self.status == _GONE

    @property
    def is_unwell(self) -> bool:
        """Its server is down or overrun; one that answers that it will not have it is well."""
        return self.status is None or self.status >= 500 or self.status == 429


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A delivery in a courier's hands, under a claim."""

    delivery: Delivery
    endpoint: Endpoint
    body: str
    claim: str


def after(delivery: Delivery, answer: Answer, *, now: Instant, fraction: float, pace: DeliveryPace) -> Delivery:
    """As it stands after a try."""
    tried = replace(
        delivery, tries=delivery.tries + 1, attempts=delivery.attempts + 1, status=answer.status, error=answer.error
    )
    if answer.is_delivered:
        return replace(tried, state=DeliveryState.DELIVERED, ended_at=now)
    if tried.tries >= pace.tries or answer.is_gone:
        return replace(tried, state=DeliveryState.FAILED, ended_at=now)
    asked = min(answer.retry_after or 0, pace.longest_retry_after)
    return replace(tried, due_at=Instant(now + max(pace.wait(tried.tries, fraction), asked)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Of one owner's calls to one host: open after enough failures in a row, then half open for one call, the `probe`.

    Each time that the probe fails it stays open for longer.
    """

    failures: int = 0
    rests: int = 0
    open_until: Instant | None = None
    probe: str | None = None

    def is_open(self, now: Instant) -> bool:
        return self.open_until is not None and now < self.open_until

    def is_half_open(self, now: Instant) -> bool:
        return self.open_until is not None and now >= self.open_until

    def probed_by(self, delivery_id: str, *, until: Instant) -> "Breaker":
        return replace(self, probe=delivery_id, open_until=until)

    def after(self, delivery_id: str, answer: Answer, *, now: Instant, pace: DeliveryPace) -> "Breaker":
        if not answer.is_unwell:
            return CLOSED
        if self.is_open(now) and self.probe != delivery_id:
            return self  # one that was on its way when it opened tells nothing new
        failures = self.failures + 1
        if failures < pace.breaks_after:
            return Breaker(failures=failures)
        rest = min(pace.rest * 2 ** min(self.rests, 20), pace.longest_rest)
        return Breaker(failures=failures, rests=self.rests + 1, open_until=Instant(now + rest))


CLOSED = Breaker()


class UnknownDelivery(NotFound):
    code = "unknown_delivery"

    def __init__(self, delivery_id: str) -> None:
        super().__init__(f"there is no delivery {delivery_id!r}")
        self.delivery_id = delivery_id
