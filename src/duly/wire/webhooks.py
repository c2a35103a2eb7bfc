"""Webhooks, their deliveries, and what they tell, in JSON. A secret is shown once, and never listed."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from duly.domain.instants import moment_of
from duly.domain.jobs import FinishedJob
from duly.domain.runs import Run
from duly.domain.webhooks.deliveries import Attempt as DomainAttempt
from duly.domain.webhooks.deliveries import Delivery as DomainDelivery
from duly.domain.webhooks.deliveries import DeliveryState
from duly.domain.webhooks.endpoints import LONGEST_ROTATION_S, ROTATION, Endpoint
from duly.domain.webhooks.events import PATTERNS, Ended
from duly.wire.groups import group_shape
from duly.wire.jobs import job_shape
from duly.wire.moments import Moment, moment_or_none
from duly.wire.runs import run_shape
from duly.wire.shapes import Shape

_EXAMPLE: dict[str, Any] = {"url": "https://example.com/hooks/duly", "events": ["job.failed", "run.*"]}
_TYPES = f"Of {', '.join(PATTERNS)}; none for what names the address itself."


class NewWebhook(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    url: Annotated[str, Field(description="https, and public.", examples=["https://example.com/hooks/duly"])]
    events: Annotated[list[str], Field(description=_TYPES)] = Field(default_factory=lambda: ["*"])
    everything: Annotated[bool, Field(description="Of every owner and of nobody's things; for admins.")] = False
    note: str = ""


class WebhookChange(Shape):
    """What is left out stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"events": ["job.*"]}]})

    events: Annotated[list[str] | None, Field(description=_TYPES)] = None
    note: str | None = None


class Rotation(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"keep_old_s": 3_600}]})

    keep_old_s: Annotated[
        int, Field(description="How long the old secret signs beside the new one.", ge=0, le=LONGEST_ROTATION_S)
    ] = ROTATION // 1_000_000


class Disabling(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "moving house"}]})

    reason: str = "disabled by its owner"


class Webhook(Shape):
    id: str
    owner: str
    url: str
    events: list[str]
    everything: bool
    note: str
    enabled: bool
    disabled_at: Moment | None
    disabled_reason: str | None
    old_secret_until: Annotated[Moment | None, Field(description="Until when the secret before signs, too.")]
    created_at: Moment
    updated_at: Moment


class CreatedWebhook(Webhook):
    secret: Annotated[str | None, Field(description="Shown this once. null: this answer is a replay.")]


class Delivery(Shape):
    id: str
    webhook_id: Annotated[str, Field(description="Where it goes.")]
    event_id: Annotated[str, Field(description="The `webhook-id` header of every try.")]
    type: str
    about: Annotated[str, Field(description="The job, group or run that it tells of.")]
    state: DeliveryState
    attempts: int
    status: Annotated[int | None, Field(description="What was last answered.")]
    error: str | None
    due_at: Annotated[Moment | None, Field(description="When it is tried next.")]
    created_at: Moment
    ended_at: Moment | None


class DeliveryAttempt(Shape):
    number: int
    at: Moment
    ms: int
    status: int | None
    error: str | None
    excerpt: Annotated[str, Field(description="How the answer began.")]


class DeliveryDetail(Delivery):
    log: list[DeliveryAttempt]


class Told(Shape):
    """The body of a webhook."""

    type: str
    timestamp: Moment
    data: Any


def webhook_fields(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "id": endpoint.id,
        "owner": endpoint.owner,
        "url": endpoint.url,
        "events": list(endpoint.events),
        "everything": endpoint.everything,
        "note": endpoint.note,
        "enabled": endpoint.is_enabled,
        "disabled_at": moment_or_none(endpoint.disabled_at),
        "disabled_reason": endpoint.disabled_reason,
        "old_secret_until": moment_or_none(endpoint.old_secret_until),
        "created_at": moment_of(endpoint.created_at),
        "updated_at": moment_of(endpoint.updated_at),
    }


def webhook_shape(endpoint: Endpoint) -> Webhook:
    return Webhook(**webhook_fields(endpoint))


def created_webhook_shape(endpoint: Endpoint, secret: str | None) -> CreatedWebhook:
    return CreatedWebhook(**webhook_fields(endpoint), secret=secret)


def delivery_fields(delivery: DomainDelivery) -> dict[str, Any]:
    is_pending = delivery.state is DeliveryState.PENDING
    return {
        "id": delivery.id,
        "webhook_id": delivery.endpoint_id,
        "event_id": delivery.event_id,
        "type": delivery.type,
        "about": delivery.subject_id,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "status": delivery.status,
        "error": delivery.error,
        "due_at": moment_of(delivery.due_at) if is_pending else None,
        "created_at": moment_of(delivery.created_at),
        "ended_at": moment_or_none(delivery.ended_at),
    }


def delivery_shape(delivery: DomainDelivery) -> Delivery:
    return Delivery(**delivery_fields(delivery))


def delivery_detail_shape(delivery: DomainDelivery, attempts: Sequence[DomainAttempt]) -> DeliveryDetail:
    log = [
        DeliveryAttempt(
            number=each.number,
            at=moment_of(each.at),
            ms=each.ms,
            status=each.status,
            error=each.error,
            excerpt=each.excerpt,
        )
        for each in attempts
    ]
    return DeliveryDetail(**delivery_fields(delivery), log=log)


def worded(ended: Ended) -> tuple[str, str]:
    """The id of what it is about, and the body: the API's own shape of the thing, as it was when it ended."""
    subject = ended.subject
    data: Shape
    if isinstance(subject, FinishedJob):
        data = job_shape(subject)
    elif isinstance(subject, Run):
        data = run_shape(subject)
    else:
        data = group_shape(subject)
    told = Told(type=ended.type, timestamp=moment_of(ended.occurred_at), data=data.model_dump(mode="json"))
    return subject.id, told.model_dump_json()
