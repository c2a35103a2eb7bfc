"""Endpoints: where an owner wants to be told, of what, and under which secrets."""

from dataclasses import dataclass, field

from duly.domain.errors import Conflict, NotFound
from duly.domain.ids import Owner
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.webhooks.events import RETRYING, Ended, Unreadable, is_asked

MOST_ENDPOINTS = 100
GONE = "its server says that it is gone (410)"
# How long the old secret still signs beside the new one, unless told otherwise.
ROTATION = Micros(24 * 3_600 * SECOND)
LONGEST_ROTATION_S = 30 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`host` has its port; `everything` is what no owner is asked about, for admins. Secrets are never shown."""

    id: str
    owner: Owner
    url: str
    host: str
    events: tuple[str, ...]
    everything: bool
    note: str
    secret: str = field(repr=False)
    old_secret: str | None = field(default=None, repr=False)
    old_secret_until: Instant | None = None
    disabled_at: Instant | None = None
    disabled_reason: str | None = None
    created_at: Instant
    updated_at: Instant

    @property
    def is_enabled(self) -> bool:
        return self.disabled_at is None

    def secrets(self, now: Instant) -> tuple[str, ...]:
        """Those that are good now, the newest first."""
        if self.old_secret is None or (self.old_secret_until or 0) <= now:
            return (self.secret,)
        return (self.secret, self.old_secret)

    def wants(self, ended: Ended) -> bool:
        """What names it, it gets whatever it is subscribed to; a job that goes on has not ended for it."""
        is_own = ended.owner == self.owner
        if is_own and ended.url == self.url and ended.type != RETRYING:
            return True
        return (is_own or self.everything) and is_asked(self.events, ended.type)

    def may_want(self, unreadable: Unreadable) -> bool:
        """Whatever type it is of: nobody can tell."""
        is_own = unreadable.owner == self.owner
        nouns = {pattern.partition(".")[0] for pattern in self.events}
        is_asked_for = not nouns.isdisjoint({"*", unreadable.noun})
        return (is_own and unreadable.url == self.url) or ((is_own or self.everything) and is_asked_for)


class UnknownEndpoint(NotFound):
    code = "unknown_webhook"

    def __init__(self, endpoint_id: str) -> None:
        super().__init__(f"there is no webhook {endpoint_id!r}")
        self.endpoint_id = endpoint_id


class EndpointExists(Conflict):
    code = "webhook_exists"

    def __init__(self, endpoint_id: str) -> None:
        super().__init__(f"there is a webhook to this address already: {endpoint_id}; change that one")
        self.endpoint_id = endpoint_id


class EndpointDisabled(Conflict):
    code = "webhook_disabled"

    def __init__(self, endpoint_id: str) -> None:
        super().__init__(f"webhook {endpoint_id} is disabled; enable it first")
        self.endpoint_id = endpoint_id


class TooManyEndpoints(Conflict):
    code = "too_many_webhooks"

    def __init__(self) -> None:
        super().__init__(f"an owner has at most {MOST_ENDPOINTS} webhooks; delete one first")
