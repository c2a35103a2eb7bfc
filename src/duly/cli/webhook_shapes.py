"""JSON of webhooks as commands print it: the shapes of the HTTP API, loaded only when some are printed."""

from collections.abc import Sequence
from typing import Any

from duly.domain.webhooks.deliveries import Attempt, Delivery
from duly.domain.webhooks.endpoints import Endpoint

Json = dict[str, Any]


def webhook_shape(endpoint: Endpoint) -> Json:
    from duly.wire import webhooks

    return webhooks.webhook_shape(endpoint).model_dump(mode="json")


def created_webhook_shape(endpoint: Endpoint, secret: str) -> Json:
    from duly.wire import webhooks

    return webhooks.created_webhook_shape(endpoint, secret).model_dump(mode="json")


def delivery_shape(delivery: Delivery) -> Json:
    from duly.wire import webhooks

    return webhooks.delivery_shape(delivery).model_dump(mode="json")


def delivery_detail_shape(delivery: Delivery, attempts: Sequence[Attempt]) -> Json:
    from duly.wire import webhooks

    return webhooks.delivery_detail_shape(delivery, attempts).model_dump(mode="json")
