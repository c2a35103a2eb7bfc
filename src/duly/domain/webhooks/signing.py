"""Signatures as Standard Webhooks has them: over id, time and body, under secrets that begin with whsec_."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence

from duly.domain.errors import InvalidInput, Refused

SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with is none
TOLERANCE_S = 300
_SHORTEST_BYTES = 24
_LONGEST_BYTES = 64
_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)


class SignatureRefused(Refused):
    """It was not sent by who has the secret, or not now; which of the two is nothing to tell a stranger."""

    code = "signature_refused"

    def __init__(self) -> None:
        super().__init__("the signature is not good")


def secret_from(drawn: str) -> str:
    """Of what the dice drew: 32 bytes or more, as text that is safe in a URL."""
    raw = base64.urlsafe_b64decode(drawn + "=" * (-len(drawn) % 4))
    return SECRET_PREFIX + base64.b64encode(raw[:_LONGEST_BYTES]).decode()


def bytes_of(secret: str) -> bytes:
    try:
        raw = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if not _SHORTEST_BYTES <= len(raw) <= _LONGEST_BYTES:
        raise InvalidInput("secret", "is no secret of a webhook", fix="use whsec_ and the base64 of 24 to 64 bytes")
    return raw


def signatures(secrets: Sequence[str], *, webhook_id: str, timestamp: str, body: bytes) -> str:
    """The header: one signature for each secret that is good, so that receivers can change theirs in between."""
    signed = b".".join((webhook_id.encode(), timestamp.encode(), body))
    return " ".join(f"v1,{_signature(bytes_of(secret), signed)}" for secret in secrets)


def verify(
    headers: Mapping[str, str], body: bytes, secrets: Iterable[str], *, now_s: int, tolerance_s: int = TOLERANCE_S
) -> str:
    """The webhook's id, if one of the secrets has signed exactly this, within the tolerance; for receivers."""
    given = {name.lower(): value for name, value in headers.items()}
    webhook_id, timestamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not webhook_id or not _TIMESTAMP.fullmatch(timestamp) or abs(now_s - int(timestamp)) > tolerance_s:
        raise SignatureRefused
    signed = b".".join((webhook_id.encode(), timestamp.encode(), body))
    good = [_signature(bytes_of(secret), signed).encode() for secret in secrets]
    for item in given.get("webhook-signature", "").split(" "):
        version, _, signature = item.partition(",")
        if version == "v1" and any(hmac.compare_digest(signature.encode(), each) for each in good):
            return webhook_id
    raise SignatureRefused


def _signature(secret: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
