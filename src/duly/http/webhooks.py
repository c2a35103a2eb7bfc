"""Routes of webhooks and their deliveries: make, look, change, rotate, test, send again."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.domain.tokens import Role
from duly.domain.webhooks.deliveries import DeliveryState
from duly.http.answers import json_answer, page_answer
from duly.http.cursors import position_from
from duly.http.door import Door, Visit, Visiting
from duly.http.parameters import Cursor, Id, Limit, Text
from duly.wire import webhooks as wire
from duly.wire.shapes import Page

router = APIRouter(prefix="/api/v1/webhooks", tags=["webhooks"], route_class=Door)
deliveries_router = APIRouter(prefix="/api/v1/deliveries", tags=["deliveries"], route_class=Door)
StateAsked = Annotated[DeliveryState | None, Query(description="Only deliveries in this state.")]


@router.post(
    "",
    status_code=201,
    response_model=wire.CreatedWebhook,
    summary="Make a webhook",
    response_description="The webhook, with its secret.",
)
async def create_webhook(visit: Visiting, body: wire.NewWebhook) -> Response:
    """Its secret is shown this once; what an idempotency key replays is the webhook without it."""
    if body.everything:
        visit.caller.require(Role.ADMIN)
    endpoint, secret = await visit.queue.webhooks.create(
        body.url,
        owner=visit.caller.owner,
        events=body.events,
        everything=body.everything,
        note=body.note,
        endpoint_id=None if visit.draw is None else f"whe_{visit.draw}",
    )
    visit.kept_body = wire.created_webhook_shape(endpoint, None).model_dump_json().encode()
    headers = {"Location": f"/api/v1/webhooks/{endpoint.id}"}
    return json_answer(wire.created_webhook_shape(endpoint, secret), 201, headers)


@router.get("", response_model=Page[wire.Webhook], summary="List webhooks", response_description="A page of webhooks.")
async def list_webhooks(visit: Visiting, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """In order of id; never a secret."""
    after = position_from(cursor, "webhooks")
    found = await visit.queue.webhooks.list(owner=visit.sees, after=after, most=limit + 1)
    return page_answer(Page[wire.Webhook], wire.webhook_shape, found, limit, "webhooks", key=lambda each: each.id)


@router.get("/{id}", response_model=wire.Webhook, summary="Read a webhook", response_description="The webhook.")
async def get_webhook(visit: Visiting, id: Id) -> Response:
    return json_answer(wire.webhook_shape(await visit.queue.webhooks.get(id, owner=visit.sees)))


@router.patch(
    "/{id}", response_model=wire.Webhook, summary="Change a webhook", response_description="The webhook as it is now."
)
async def update_webhook(visit: Visiting, id: Id, body: wire.WebhookChange) -> Response:
    """What it wants to be told, and its note. Another address is another webhook."""
    changed = await visit.queue.webhooks.update(id, owner=visit.sees, events=body.events, note=body.note)
    return json_answer(wire.webhook_shape(changed))


@router.delete("/{id}", status_code=204, summary="Delete a webhook", response_description="It is gone.")
async def delete_webhook(visit: Visiting, id: Id) -> Response:
    """With the log of its deliveries."""
    await visit.queue.webhooks.delete(id, owner=visit.sees)
    return Response(status_code=204)


@router.post(
    "/{id}/rotate",
    response_model=wire.CreatedWebhook,
    summary="Give a webhook a new secret",
    response_description="The webhook, with its new secret.",
)
async def rotate_webhook(visit: Visiting, id: Id, body: wire.Rotation | None = None) -> Response:
    """Shown this once. For a while, calls are signed with the old one, too."""
    keep_old_s = (body or wire.Rotation()).keep_old_s
    endpoint, secret = await visit.queue.webhooks.rotate(id, owner=visit.sees, keep_old_s=keep_old_s)
    visit.kept_body = wire.created_webhook_shape(endpoint, None).model_dump_json().encode()
    return json_answer(wire.created_webhook_shape(endpoint, secret))


@router.post(
    "/{id}/disable",
    response_model=wire.Webhook,
    summary="Disable a webhook",
    response_description="The webhook, disabled.",
)
async def disable_webhook(visit: Visiting, id: Id, body: wire.Disabling | None = None) -> Response:
    """Nothing is sent there any more; deliveries that waited have failed."""
    reason = f"disabled by {visit.caller.owner}" if body is None else body.reason
    return json_answer(wire.webhook_shape(await visit.queue.webhooks.disable(id, owner=visit.sees, reason=reason)))


@router.post(
    "/{id}/enable",
    response_model=wire.Webhook,
    summary="Enable a webhook",
    response_description="The webhook, enabled.",
)
async def enable_webhook(visit: Visiting, id: Id) -> Response:
    """What ends from now on is sent there; deliveries that have failed can be sent again."""
    return json_answer(wire.webhook_shape(await visit.queue.webhooks.enable(id, owner=visit.sees)))


@router.post(
    "/{id}/test",
    status_code=201,
    response_model=wire.Delivery,
    summary="Send a test",
    response_description="The delivery, on its way.",
)
async def test_webhook(visit: Visiting, id: Id) -> Response:
    """An event of type `webhook.test`, signed and delivered like any other."""
    return json_answer(wire.delivery_shape(await visit.queue.webhooks.test(id, owner=visit.sees)), 201)


@deliveries_router.get(
    "", response_model=Page[wire.Delivery], summary="List deliveries", response_description="A page of deliveries."
)
async def list_deliveries(
    visit: Visiting,
    *,
    webhook_id: Annotated[Text | None, Query(description="Only those of this webhook.")] = None,
    about: Annotated[Text | None, Query(description="Only those that tell of this job, group or run.")] = None,
    state: StateAsked = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The newest first."""
    found = await visit.queue.webhooks.deliveries(
        owner=visit.sees,
        endpoint_id=webhook_id,
        about=about,
        state=state,
        before=position_from(cursor, "deliveries"),
        most=limit + 1,
    )
    return page_answer(Page[wire.Delivery], wire.delivery_shape, found, limit, "deliveries", key=lambda each: each.id)


@deliveries_router.get(
    "/{id}",
    response_model=wire.DeliveryDetail,
    summary="Read a delivery",
    response_description="The delivery, with a line for each try.",
)
async def get_delivery(visit: Visiting, id: Id) -> Response:
    return json_answer(await _detail(visit, id))


@deliveries_router.post(
    "/{id}/resend",
    response_model=wire.DeliveryDetail,
    summary="Send a delivery again",
    response_description="The delivery, on its way.",
)
async def resend_delivery(visit: Visiting, id: Id) -> Response:
    """Under the same id and with all its tries, whatever became of it."""
    await visit.queue.webhooks.resend(id, owner=visit.sees)
    return json_answer(await _detail(visit, id))


async def _detail(visit: Visit, delivery_id: str) -> wire.DeliveryDetail:
    return wire.delivery_detail_shape(*await visit.queue.webhooks.delivery(delivery_id, owner=visit.sees))
