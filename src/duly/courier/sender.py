"""One signed call: to an address that was checked, bounded in time and in size, and never redirected."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import httpx2

from duly.courier.lookups import Lookup, safe_addresses, system_lookup
from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, Micros, instant_of
from duly.domain.webhooks.addresses import AddressRefused, AddressRule, Target
from duly.domain.webhooks.deliveries import DEFAULT_PACE, LONGEST_ERROR, LONGEST_EXCERPT, Answer, DeliveryPace, Errand
from duly.domain.webhooks.signing import signatures
from duly.ports.clock import Clock
from duly.version import __version__

_MOST_READ_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSender:
    """A status that has arrived counts, whatever becomes of the rest of the answer."""

    clock: Clock
    rule: AddressRule
    pace: DeliveryPace = DEFAULT_PACE
    lookup: Lookup = system_lookup
    # Made once: it takes as long as many calls do.
    trust: ssl.SSLContext = field(default_factory=httpx2.create_ssl_context)

    async def send(self, errand: Errand) -> Answer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        met = _Met()
        error: str | None = None
        try:
            async with asyncio.timeout(self.pace.all_within_s):
                await self._call(errand, met)
        except TimeoutError:
            error = f"no whole answer within {self.pace.all_within_s:g} s"
        except (AddressRefused, InvalidInput) as refused:
            error = str(refused)
        except httpx2.ConnectTimeout:
            error = f"no connection within {self.pace.connect_within_s:g} s"
        except httpx2.TimeoutException:
            error = f"no answer within {self.pace.first_byte_within_s:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as failed:
            error = f"{type(failed).__name__}: {failed}"
        ms = int((loop.time() - began) * 1_000)
        if met.status is None:
            return Answer(ms=ms, error=_shown(error or "no answer", LONGEST_ERROR))
        return Answer(
            ms=ms,
            status=met.status,
            error=None if 200 <= met.status < 300 else _refusal(met.status),
            excerpt=_shown(met.read.decode("utf-8", "replace"), LONGEST_EXCERPT),
            retry_after=self._retry_after(met.retry_after),
        )

    async def _call(self, errand: Errand, met: "_Met") -> None:
        target = self.rule.target_of(errand.endpoint.url)
        body = errand.body.encode()
        headers = self._headers(errand, target, body)
        addresses = await safe_addresses(target, self.rule, self.lookup)
        async with self._client() as client:
            for place, address in enumerate(addresses):
                # To the number that was checked, under the name that was given: for `Host`, TLS and its certificate.
                url = httpx2.URL(target.url).copy_with(host=str(address))
                name = {"sni_hostname": target.host}
                request = client.build_request("POST", url, headers=headers, content=body, extensions=name)
                try:
                    await _answered(client, request, met)
                except (httpx2.ConnectError, httpx2.ConnectTimeout):
                    if place + 1 == len(addresses):
                        raise
                else:
                    return

    def _client(self) -> httpx2.AsyncClient:
        """A fresh one for each call: a connection that is kept could be used under another name."""
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(self.pace.first_byte_within_s, connect=self.pace.connect_within_s),
            verify=self.trust,
            follow_redirects=False,
            # A proxy of the environment would connect in our place, to addresses that nobody has checked.
            trust_env=False,
        )

    def _headers(self, errand: Errand, target: Target, body: bytes) -> Mapping[str, str]:
        now = self.clock.now()
        timestamp = str(now // SECOND)
        webhook_id = errand.delivery.event_id
        return {
            "host": target.authority,
            "user-agent": f"Duly/{__version__}",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "webhook-id": webhook_id,
            "webhook-timestamp": timestamp,
            "webhook-signature": signatures(
                errand.endpoint.secrets(now), webhook_id=webhook_id, timestamp=timestamp, body=body
            ),
        }

    def _retry_after(self, text: str | None) -> Micros | None:
        if text is None:
            return None
        if text.isascii() and text.isdigit():
            digits = text.lstrip("0") or "0"
            return Micros(int(digits) * SECOND) if len(digits) <= 9 else self.pace.longest_retry_after
        try:
            return Micros(max(instant_of(parsedate_to_datetime(text), field="retry-after") - self.clock.now(), 0))
        except (ValueError, OverflowError):
            return None


@dataclass(slots=True)
class _Met:
    """As much of an answer as has come."""

    status: int | None = None
    retry_after: str | None = None
    read: bytes = b""


async def _answered(client: httpx2.AsyncClient, request: httpx2.Request, met: _Met) -> None:
    response = await client.send(request, stream=True)
    try:
        met.status = response.status_code
        met.retry_after = response.headers.get("retry-after")
        async for piece in response.aiter_raw():
            met.read = (met.read + piece)[:_MOST_READ_BYTES]
            if len(met.read) >= _MOST_READ_BYTES:
                break
    finally:
        await response.aclose()


def _refusal(status: int) -> str:
    if 300 <= status < 400:
        return f"answered {status}: redirects are not followed"
    return f"answered {status}"


def _shown(text: str, longest: int) -> str:
    """Fit to be kept and printed, whatever a stranger has sent."""
    return "".join(sign if sign.isprintable() else " " for sign in text)[:longest].strip()
