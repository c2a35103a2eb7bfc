"""Decisions that other services send, signed: verified over the raw body before a word of it is read."""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import Response

from duly.application.reviews import Delivery
from duly.domain.instants import SECOND, Instant
from duly.domain.reviews import AlreadyDecided, Decision, UnknownReview
from duly.domain.texts import text_of
from duly.http.answers import json_answer
from duly.http.door import Door, Visit, Visiting, for_role
from duly.http.problems import Refusal
from duly.wire import inbound as wire
from duly.wire.strict_json import MalformedJson, value_from

PREFIX = "/api/v1/inbound/"
LARGEST_DELIVERY = 262_144
TOLERANCE_S = 300
STANDARD, PLANE = "standard", "plane"

router = APIRouter(prefix=PREFIX.rstrip("/"), tags=["reviews"], route_class=Door)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """The secrets that services sign with; a source without one is not there."""

    standard: str | None = None
    plane: str | None = None

    def delivery(self, source: str, headers: Headers, body: bytes, now: Instant) -> Delivery:
        """What this is a delivery of; raises a refusal unless its signature is good."""
        secret = {STANDARD: self.standard, PLANE: self.plane}.get(source)
        if secret is None:
            raise Refusal(404, f"nothing is taken from {source[:40]!a}", code="unknown_source")
        if len(body) > LARGEST_DELIVERY:
            raise Refusal(413, f"a delivery of more than {LARGEST_DELIVERY} bytes is not read")
        given = _standard_id(secret, headers, body, now) if source == STANDARD else _plane_id(secret, headers, body)
        return Delivery(source, text_of(given, field="the delivery's id"))


def _standard_id(secret: str, headers: Headers, body: bytes, now: Instant) -> str:
    """As Standard Webhooks sign: id, time stamp and body; one of several signatures will do."""
    name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    signed = b".".join((name.encode("latin-1"), at.encode("latin-1"), body))
    expected = b"v1," + base64.b64encode(hmac.new(_key_of(secret), signed, hashlib.sha256).digest())
    given = headers.get("webhook-signature", "").split(" ")
    # All of them are compared, so that the time taken tells nothing.
    matches = [hmac.compare_digest(expected, each.encode("latin-1")) for each in given]
    if not any(matches) or not name:
        raise _bad_signature()
    if not (at.isascii() and at.isdigit() and len(at) <= 12) or abs(now // SECOND - int(at)) > TOLERANCE_S:
        raise Refusal(401, f"it was signed more than {TOLERANCE_S} seconds ago, or ahead", code="stale_delivery")
    return name


def _plane_id(secret: str, headers: Headers, body: bytes) -> str:
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
    given = headers.get("x-plane-signature", "").lower().encode("latin-1")
    name = headers.get("x-plane-delivery", "")
    if not hmac.compare_digest(expected, given) or not name:
        raise _bad_signature()
    return name


def _key_of(secret: str) -> bytes:
    """Standard Webhooks write theirs in base64, behind a mark; any other is taken as it is."""
    if secret.startswith("whsec_"):
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def _bad_signature() -> Refusal:
    return Refusal(401, "its signature is missing, or not that of this body", code="bad_signature")


@router.post(
    "/{name}",
    response_model=wire.Received,
    openapi_extra=for_role(None),
    summary="Take a decision from another service",
    response_description="What it came to; the same delivery again comes to the same.",
)
async def receive_decision(visit: Visiting, name: Annotated[str, Path(min_length=1, max_length=40)]) -> Response:
    """From `standard`, signed as Standard Webhooks are, or from `plane`, as Plane sends its own."""
    inbound: Inbound = visit.request.app.state.inbound
    body = await visit.request.body()
    delivery = inbound.delivery(name, visit.request.headers, body, visit.queue.storage.clock.now())
    try:
        value = value_from(body)
    except MalformedJson as malformed:
        raise Refusal(400, f"the body {malformed}", code="malformed_json") from None
    return json_answer(
        await (_standard(visit, delivery, value) if name == STANDARD else _plane(visit, delivery, value))
    )


async def _standard(visit: Visit, delivery: Delivery, value: Any) -> wire.Received:
    try:
        said = wire.InboundDecision.model_validate(value)
    except ValidationError as wrong:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in wrong.errors()]) from None
    return await _decided(visit, delivery, said.review_id, said.by("a webhook", key=_key(delivery)))


async def _plane(visit: Visit, delivery: Delivery, value: Any) -> wire.Received:
    said = wire.plane_said(value)
    if said is None:
        return wire.Received(outcome=wire.Outcome.IGNORED)
    decision = Decision(verdict=said.verdict, by=said.by, key=_key(delivery))
    try:
        return await _decided(visit, delivery, said.review_id, decision)
    except UnknownReview:
        return wire.Received(outcome=wire.Outcome.IGNORED)


async def _decided(visit: Visit, delivery: Delivery, review_id: str, decision: Decision) -> wire.Received:
    """A decision that comes too late is an answer, too: whoever sent it would otherwise send it again and again."""
    outcome = wire.Outcome.DECIDED
    try:
        review = await visit.queue.reviews.decide(review_id, decision, owner=None, delivery=delivery)
    except AlreadyDecided as already:
        outcome, review = wire.Outcome.ALREADY_DECIDED, already.review
    return wire.Received(outcome=outcome, review_id=review.id, state=review.state)


def _key(delivery: Delivery) -> str:
    return f"{delivery.source}:{delivery.id}"
