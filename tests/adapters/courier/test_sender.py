"""One call: resolved once, checked, made to the checked address under the given name, and never led astray."""

import asyncio
import datetime as dt
import ssl
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from duly.courier.sender import HttpSender
from duly.domain.ids import Owner
from duly.domain.instants import SECOND, Instant
from duly.domain.webhooks.addresses import Address, AddressRule
from duly.domain.webhooks.deliveries import DEFAULT_PACE, Answer, Delivery, DeliveryState, Errand
from duly.domain.webhooks.endpoints import Endpoint
from duly.domain.webhooks.signing import secret_from
from duly.system.clock import SystemClock
from tests.receiver import Receiver, answers, drips, receiving

HERE = ip_address("127.0.0.1")
NOW = Instant(1_800_000_000 * SECOND)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


def errand(url: str) -> Errand:
    delivery = Delivery(
        id="dlv_1",
        event_id="evt_1",
        endpoint_id="whe_1",
        owner=Owner("ann"),
        type="webhook.test",
        subject_id="whe_1",
        state=DeliveryState.PENDING,
        tries=0,
        attempts=0,
        due_at=NOW,
        give_up_at=NOW,
        status=None,
        error=None,
        created_at=NOW,
        ended_at=None,
    )
    endpoint = Endpoint(
        id="whe_1",
        owner=Owner("ann"),
        url=url,
        host="x:1",
        events=(),
        everything=False,
        note="",
        secret=secret_from("a" * 43),
        created_at=NOW,
        updated_at=NOW,
    )
    return Errand(delivery=delivery, endpoint=endpoint, body="{}", claim="c")


class Names:
    """A look-up whose answers change from one time to the next; the last one stays."""

    def __init__(self, *answers: Sequence[Address]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def sender(names: Names | None = None, *, loopback: bool = True, **given: Any) -> HttpSender:
    return HttpSender(clock=SystemClock(), rule=AddressRule(loopback=loopback), lookup=names or Names([HERE]), **given)


@pytest.mark.req("DEC-009")
def test_a_name_is_looked_up_once_and_what_it_says_the_second_time_cannot_matter() -> None:
    async def test() -> None:
        async with receiving() as receiver:
            names = Names([HERE], [IPv4Address("10.0.0.1")])
            answer = await sender(names).send(errand(f"http://hooks.test:{receiver.port}/x?y=1"))

            assert answer.is_delivered
            assert names.asked == ["hooks.test"]
            (got,) = receiver.received
            assert got.path == "/x?y=1"
            assert got.headers["host"] == f"hooks.test:{receiver.port}"

    run(test())


@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["169.254.169.254"], ["::ffff:127.0.0.1"], []],
)
@pytest.mark.req("DEC-009", error=True)
def test_one_address_that_is_not_public_and_nothing_is_connected_to(addresses: list[str]) -> None:
    async def test() -> None:
        async with receiving() as receiver:
            names = Names([ip_address(each) for each in addresses])
            answer = await sender(names).send(errand(f"http://hooks.test:{receiver.port}/"))

            assert answer.status is None
            assert "hooks.test" in str(answer.error)
            assert receiver.received == []

    run(test())


@pytest.mark.req("DEC-009", error=True)
def test_without_the_setting_this_machine_is_not_called_even_by_name() -> None:
    async def test() -> None:
        async with receiving() as receiver:
            for url in (f"https://hooks.test:{receiver.port}/", f"https://127.0.0.1:{receiver.port}/", receiver.url):
                answer = await sender(loopback=False).send(errand(url))
                assert answer.status is None
                assert answer.error
            assert receiver.received == []

    run(test())


def test_a_redirect_is_not_followed() -> None:
    async def test() -> None:
        async with receiving() as other, receiving(answers(307, location=other.url)) as receiver:
            answer = await sender().send(errand(receiver.url))

            assert (answer.status, answer.is_delivered) == (307, False)
            assert other.received == []

    run(test())


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with receiving() as proxy, receiving() as receiver:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            assert (await sender().send(errand(receiver.url))).is_delivered
            assert proxy.received == []

    run(test())


def test_an_answer_is_bounded_in_time_and_what_is_kept_of_it_in_size() -> None:
    async def test() -> None:
        pace = replace(DEFAULT_PACE, first_byte_within_s=5.0, all_within_s=0.5)
        async with receiving(drips) as receiver:
            answer = await sender(pace=pace).send(errand(receiver.url))
            assert answer.error == "no whole answer within 0.5 s"
            assert answer.ms < 15_000
        async with receiving(answers(200, "\x1b[31m" + "é" * 100_000)) as receiver:
            answer = await sender().send(errand(receiver.url))
            assert 490 <= len(answer.excerpt) <= 500
            assert answer.excerpt.isprintable()

    run(test())


def test_nobody_there_is_an_answer_too() -> None:
    async def test() -> Answer:
        async with receiving() as receiver:
            port = receiver.port
        return await sender().send(errand(f"http://127.0.0.1:{port}/"))

    answer = asyncio.run(test())
    assert answer.status is None
    assert answer.error
    assert answer.is_unwell


@pytest.mark.parametrize(("name", "is_good"), [("hooks.test", True), ("other.test", False)])
def test_tls_is_spoken_under_the_given_name_and_its_certificate_must_have_it(
    tmp_path: Path, name: str, is_good: bool
) -> None:
    server, trust = _certificate(tmp_path, "hooks.test")
    heard: list[str | None] = []
    server.sni_callback = lambda _, sni, __: heard.append(sni)

    async def test() -> tuple[Answer, Receiver]:
        async with receiving(trust=server) as receiver:
            url = f"https://{name}:{receiver.port}/"
            return await sender(trust=trust).send(errand(url)), receiver

    answer, receiver = asyncio.run(test())
    assert heard == [name]
    assert answer.is_delivered is is_good
    assert len(receiver.received) == int(is_good)


def _certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's own, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    today = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - dt.timedelta(days=1))
        .not_valid_after(today + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    unencrypted = serialization.NoEncryption()
    (folder / "cert").write_bytes(certificate.public_bytes(pem))
    (folder / "key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, unencrypted))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert", folder / "key")
    trust = ssl.create_default_context(cafile=str(folder / "cert"))
    return server, trust
