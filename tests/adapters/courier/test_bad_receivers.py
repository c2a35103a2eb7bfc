"""What servers can do to whoever calls them, each met by one call: an answer that says it, within bounds."""

import asyncio
import gzip
import socket
from dataclasses import replace
from ipaddress import ip_address

import pytest

from duly.domain.webhooks.deliveries import DEFAULT_PACE, LONGEST_EXCERPT, Answer, DeliveryPace
from tests.adapters.courier.test_sender import Names, errand, run, sender
from tests.receiver import Manner, Receiver, answers, endlessly, receiving, says

BOMB = gzip.compress(b"boom" * 5_000_000)
# Much longer than a first answer needs: what ends at it has no end of its own.
SHORT = replace(DEFAULT_PACE, first_byte_within_s=20.0, all_within_s=2.0)


def answer_to(manner: Manner, *, pace: DeliveryPace = DEFAULT_PACE) -> tuple[Answer, Receiver]:
    async def test() -> tuple[Answer, Receiver]:
        async with receiving(manner) as receiver:
            return await asyncio.wait_for(sender(pace=pace).send(errand(receiver.url)), 60), receiver

    return asyncio.run(test())


@pytest.mark.req("DEC-009", error=True)
@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305, 307, 308, 399])
def test_what_sends_elsewhere_is_a_failure_and_nobody_follows(status: int) -> None:
    async def test() -> None:
        async with receiving() as other, receiving(answers(status, location=other.url)) as receiver:
            answer = await sender().send(errand(receiver.url))

            assert (answer.status, answer.is_delivered) == (status, False)
            assert f"answered {status}" in str(answer.error)
            assert other.received == []

    run(test())


@pytest.mark.req("DEC-009", error=True)
@pytest.mark.parametrize(
    "manner",
    [
        says(b"SSH-2.0-OpenSSH_9.6\r\n"),
        says(b"HTTP/1.1 20 OK\r\n\r\n"),
        says(b"HTTP/2 200\r\n\r\n"),
        says(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"),
        says(b"\x00" * 5_000),
        says(b""),
        says(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        says(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        endlessly(b"HTTP/1.1 200 OK\r\nX-A: ", b"a" * 65_536),
        endlessly(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 8_192),
    ],
)
def test_what_is_no_answer_is_a_failure_that_says_so(manner: Manner) -> None:
    answer, receiver = answer_to(manner)

    assert answer.status is None
    assert answer.error
    assert answer.error.isprintable()
    assert answer.is_unwell
    assert len(receiver.received) == 1, "one call, whatever it met"


def test_one_that_says_continue_for_ever_is_left() -> None:
    answer, _ = answer_to(endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), pace=SHORT)

    assert (answer.status, answer.error) == (None, "no whole answer within 2 s")


@pytest.mark.parametrize(
    "manner",
    [
        endlessly(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n", b"x" * 65_536),
        endlessly(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"4000\r\n" + b"x" * 0x4000 + b"\r\n"),
    ],
)
def test_of_an_answer_without_end_only_the_beginning_is_read(manner: Manner) -> None:
    answer, _ = answer_to(manner)

    assert answer.is_delivered
    assert answer.ms < DEFAULT_PACE.all_within_s * 1_000, "nobody waited for its end"


@pytest.mark.parametrize(
    "manner",
    [
        endlessly(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n", b"x" * 65_536),
        endlessly(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", pause_s=0.02),
        endlessly(b"HTTP/1.1 200 OK\r\n\r\n", b"x", pause_s=0.02),
        says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\nnonsense\r\n"),
    ],
)
def test_a_good_status_counts_however_long_or_slow_or_broken_what_follows_it(manner: Manner) -> None:
    answer, _ = answer_to(manner, pace=SHORT)

    assert (answer.status, answer.error, answer.is_delivered) == (200, None, True)
    assert 1 <= len(answer.excerpt) <= LONGEST_EXCERPT
    assert set(answer.excerpt) == {"x"}


@pytest.mark.parametrize("encoding", ["gzip", "deflate, gzip", "br", "zstd"])
def test_what_is_packed_is_never_unpacked(encoding: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(BOMB)}\r\n\r\n"
    answer, receiver = answer_to(says(head.encode() + BOMB))

    assert answer.is_delivered
    assert "boom" not in answer.excerpt
    assert len(answer.excerpt) <= LONGEST_EXCERPT
    assert receiver.received[0].headers["accept-encoding"] == "identity"


def test_one_that_takes_no_connections_is_left_in_time() -> None:
    async def test() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            waiting = [socket.socket() for _ in range(4)]
            for each in waiting:  # more than it has room for: the next is kept waiting
                each.setblocking(False)
                each.connect_ex(full.getsockname())
            pace = replace(DEFAULT_PACE, connect_within_s=0.3)
            answer = await sender(pace=pace).send(errand(f"http://127.0.0.1:{full.getsockname()[1]}/"))
            for each in waiting:
                each.close()
        assert (answer.status, answer.error) == (None, "no connection within 0.3 s")

    run(test())


@pytest.mark.req("DEC-009", error=True)
@pytest.mark.parametrize(
    "private", ["10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::a00:1", "fd00::1"]
)
@pytest.mark.parametrize("place", [0, 1, 9])
def test_one_private_address_among_many_public_ones_and_nobody_is_called(private: str, place: int) -> None:
    async def test() -> None:
        addresses = [ip_address(f"127.0.0.{number}") for number in range(1, 10)]
        addresses.insert(place, ip_address(private))
        async with receiving() as receiver:
            answer = await sender(Names(addresses)).send(errand(f"http://hooks.test:{receiver.port}/"))

            assert answer.error == "hooks.test has an address that is not public"
            assert receiver.received == []

    run(test())


@pytest.mark.req("DEC-009", error=True)
def test_a_name_that_turns_private_is_refused_from_then_on() -> None:
    async def test() -> None:
        async with receiving() as receiver:
            names = Names([ip_address("127.0.0.1")], [ip_address("::ffff:127.0.0.1")])
            url = f"http://hooks.test:{receiver.port}/"
            first, second = [await sender(names).send(errand(url)) for _ in range(2)]

            assert first.is_delivered
            assert (second.status, second.error) == (None, "hooks.test has an address that is not public")
            assert len(receiver.received) == 1

    run(test())


def test_of_many_addresses_three_are_tried_and_the_next_takes_over_from_one_that_is_not_there() -> None:
    async def test() -> None:
        async with receiving() as receiver:
            url = f"http://hooks.test:{receiver.port}/"
            elsewhere = [ip_address(f"127.0.0.{number}") for number in range(2, 9)]
            here = ip_address("127.0.0.1")

            assert (await sender(Names([*elsewhere[:2], here])).send(errand(url))).is_delivered
            assert not (await sender(Names([*elsewhere, here])).send(errand(url))).is_delivered
            assert len(receiver.received) == 1

    run(test())
