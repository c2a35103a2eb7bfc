"""Which addresses are safe, what a signature is worth, how often is tried and when a host is left alone."""

from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.webhooks.addresses import AddressRefused, AddressRule, is_public
from duly.domain.webhooks.deliveries import (
    CLOSED,
    DEFAULT_PACE,
    Answer,
    Breaker,
    Delivery,
    DeliveryState,
    after,
)
from duly.domain.webhooks.events import is_asked, patterns_of
from duly.domain.webhooks.signing import SignatureRefused, secret_from, signatures, verify

NOW = Instant(1_800_000_000 * SECOND)
PUBLIC = AddressRule()
LOOPBACK = AddressRule(loopback=True)
SECRET = secret_from("a" * 43)
OTHER = secret_from("b" * 43)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.9.9.9"),  # noqa: S104
        *("168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1"),
        *("192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "240.0.0.1"),
        *("255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8", "::7f00:1"),
        *("64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::"),
        *("3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%eth0", "fec0::1"),
        *("ff02::1", "2606:4700::1%eth0"),
    ],
)
@pytest.mark.req("DEC-009", error=True)
def test_what_is_not_public_is_never_called(address: str) -> None:
    number = ip_address(address)

    assert not is_public(number)
    target = PUBLIC.target_of("https://example.com/")
    with pytest.raises(AddressRefused):
        PUBLIC.require(target, [number])
    with pytest.raises(AddressRefused):
        PUBLIC.require(target, [ip_address("8.8.8.8"), number])


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00::1"])
def test_what_is_public_may_be_called(address: str) -> None:
    PUBLIC.require(PUBLIC.target_of("https://example.com/"), [ip_address(address)])


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "example.com",
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "https://",
            "https:///x",
        ),
        *("http://example.com/", "https://user@example.com/", "https://u:p@example.com/", "https://a@b@example.com/"),
        *("https://example.com/#x", "https://example.com:0/", "https://example.com:22/", "https://example.com:99999/"),
        *("https://127.0.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/"),
        *("https://0x7f000001/", "https://2130706433/", "https://0177.0.0.1/", "https://127.1/", "https://0/"),
        *(
            "https://0x7f.1/",
            "https://1.2.3.4.5/",
            "https://①②⑦.0.0.1/",
            "https://１２７.0.0.1/",
            "https://exämple.com/",
        ),
        *("https://169.254.169.254/latest/meta-data", "https://[fe80::1%25eth0]/", "https://10.0.0.1:8443/"),
        *(
            "https://example.com\\@127.0.0.1/",
            "https://exa mple.com/",
            "https://example.com/\r\nHost: x",
            "https://[::1/",
        ),
        *("https://exam%00ple.com/", "https://-example.com/", "https://example..com/", "https://example.com./"),
        "https://example.com/" + "x" * 2_000,
    ],
)
@pytest.mark.req("DEC-009", error=True)
def test_an_address_that_is_not_safe_is_refused_with_its_field(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        PUBLIC.target_of(url)

    assert refused.value.field == "url"


def test_what_a_target_is_made_of() -> None:
    target = PUBLIC.target_of("https://Hooks.Example.com:8443/a/b?c=d")

    assert (target.host, target.port, target.authority) == ("hooks.example.com", 8443, "hooks.example.com:8443")
    assert PUBLIC.target_of("https://example.com/x").authority == "example.com"
    assert PUBLIC.target_of("https://[2606:4700::1111]/").authority == "[2606:4700::1111]"
    assert LOOPBACK.target_of("http://localhost:1/").authority == "localhost:1"


def test_this_machine_is_called_only_if_told_and_nothing_else_by_http() -> None:
    here, there = [ip_address("127.0.0.1")], [ip_address("8.8.8.8")]
    LOOPBACK.require(LOOPBACK.target_of("http://127.0.0.1:22/"), here)
    LOOPBACK.require(LOOPBACK.target_of("https://example.com/"), there)
    for url, addresses in (("http://example.com/", there), ("https://example.com:22/", there)):
        with pytest.raises(AddressRefused):
            LOOPBACK.require(LOOPBACK.target_of(url), addresses)
    for private in ("10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1"):
        with pytest.raises(AddressRefused):
            LOOPBACK.require(LOOPBACK.target_of("https://example.com/"), [ip_address(private)])
    with pytest.raises(AddressRefused):
        PUBLIC.require(PUBLIC.target_of("https://example.com/"), [])


@given(st.ip_addresses(v=6))
def test_nothing_in_ipv6_that_leads_to_ipv4_is_public(address: Any) -> None:
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])

    assert not (inner and is_public(address))
    assert not (is_public(address) and not address.is_global)


def _headers(body: bytes, *secrets: str, at: str = "1800000000") -> dict[str, str]:
    signed = signatures(secrets, webhook_id="evt_1", timestamp=at, body=body)
    return {"webhook-id": "evt_1", "webhook-timestamp": at, "webhook-signature": signed}


def test_a_signature_is_as_standard_webhooks_has_it() -> None:
    """The example of the specification's own libraries."""
    headers = signatures(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        webhook_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp="1614265330",
        body=b'{"test": 2432232314}',
    )

    assert headers == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.req("DEC-009")
def test_either_secret_is_good_while_both_sign_and_bad_items_are_passed_over() -> None:
    headers = _headers(b"{}", SECRET, OTHER)
    for secret in (SECRET, OTHER):
        assert verify(headers, b"{}", [secret], now_s=1_800_000_000) == "evt_1"
    headers["webhook-signature"] = "nonsense v0,x v1a,y v1 , " + headers["webhook-signature"]
    assert verify({name.title(): text for name, text in headers.items()}, b"{}", [SECRET], now_s=1_800_000_299)


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "evt_2"},
        {"webhook-id": ""},
        {"webhook-timestamp": "1800000001"},
        *({"webhook-timestamp": text} for text in ("1800000000.0", " 1800000000", "1_800_000_000", "١", "-1", "")),
        {"webhook-signature": ""},
        {"webhook-signature": "v2,abc"},
    ],
)
@pytest.mark.req("DEC-009", error=True)
def test_what_was_altered_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(SignatureRefused):
        verify({**_headers(b"{}", SECRET), **change}, b"{}", [SECRET], now_s=1_800_000_000)


def test_what_is_old_or_signed_by_another_is_refused() -> None:
    headers = _headers(b"{}", SECRET)
    for body, secrets, now_s in (
        (b"{} ", [SECRET], 1_800_000_000),
        (b"{}", [OTHER], 1_800_000_000),
        (b"{}", [], 1_800_000_000),
        (b"{}", [SECRET], 1_800_000_301),
        (b"{}", [SECRET], 1_799_999_699),
    ):
        with pytest.raises(SignatureRefused):
            verify(headers, body, secrets, now_s=now_s)
    with pytest.raises(InvalidInput):
        verify(headers, b"{}", ["whsec_short"], now_s=1_800_000_000)


def _delivery(tries: int = 0) -> Delivery:
    return Delivery(
        id="dlv_1",
        event_id="evt_1",
        endpoint_id="whe_1",
        owner=Owner("ann"),
        type="job.completed",
        subject_id="job_1",
        state=DeliveryState.PENDING,
        tries=tries,
        attempts=tries + 7,
        due_at=NOW,
        give_up_at=Instant(NOW + SECOND),
        status=None,
        error=None,
        created_at=NOW,
        ended_at=None,
    )


@pytest.mark.req("DEC-009")
@pytest.mark.req("RISK-03")
def test_one_try_and_three_more_each_after_a_longer_pause() -> None:
    for tries, longest_s in ((0, 30), (1, 120), (2, 480)):
        for fraction in (0.0, 0.999):
            tried = after(_delivery(tries), Answer(ms=1, status=500), now=NOW, fraction=fraction, pace=DEFAULT_PACE)
            assert tried.state is DeliveryState.PENDING
            assert longest_s * SECOND // 2 <= tried.due_at - NOW <= longest_s * SECOND
    last = after(_delivery(3), Answer(ms=1, error="no answer"), now=NOW, fraction=0, pace=DEFAULT_PACE)
    assert (last.state, last.ended_at, last.attempts) == (DeliveryState.FAILED, NOW, 11)
    gone = after(_delivery(0), Answer(ms=1, status=410), now=NOW, fraction=0, pace=DEFAULT_PACE)
    assert gone.state is DeliveryState.FAILED


@pytest.mark.req("RISK-03")
def test_a_breaker_opens_rests_lets_one_through_and_rests_for_longer() -> None:
    bad, good = Answer(ms=1, status=503), Answer(ms=1, status=204)
    breaker = CLOSED
    for _ in range(4):
        breaker = breaker.after("a", bad, now=NOW, pace=DEFAULT_PACE)
        assert breaker.open_until is None
    breaker = breaker.after("a", bad, now=NOW, pace=DEFAULT_PACE)
    minute = Micros(60 * SECOND)
    assert breaker.open_until == NOW + minute
    assert breaker.after("b", bad, now=NOW, pace=DEFAULT_PACE) == breaker, "it was on its way"
    later = Instant(NOW + minute)
    assert breaker.is_half_open(later)
    probing = breaker.probed_by("c", until=Instant(later + minute))
    assert probing.is_open(later)
    assert probing.after("c", bad, now=later, pace=DEFAULT_PACE).open_until == later + 2 * minute
    assert probing.after("c", good, now=later, pace=DEFAULT_PACE) == CLOSED
    refused = Answer(ms=1, status=404)
    assert Breaker(failures=4).after("a", refused, now=NOW, pace=DEFAULT_PACE) == CLOSED, "its server is well"


@pytest.mark.req("RISK-03", error=True)
def test_a_rest_has_an_end() -> None:
    breaker = Breaker(failures=900, rests=900, open_until=NOW)
    opened = breaker.after("a", Answer(ms=1), now=NOW, pace=DEFAULT_PACE)

    assert opened.open_until == NOW + 900 * SECOND


def test_types_are_asked_for_one_by_one_by_noun_or_all() -> None:
    assert patterns_of(["run.*", "job.failed", "job.failed"]) == ("run.*", "job.failed")
    assert is_asked(("run.*",), "run.error")
    assert not is_asked(("run.*", "job.failed"), "job.completed")
    assert is_asked(("*",), "job.completed")
    for wrong in (["job.exploded"], "job.*", [1], ["webhook.test"]):
        with pytest.raises(InvalidInput):
            patterns_of(wrong)
