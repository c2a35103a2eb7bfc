"""Whatever is sent, the answer is a problem with its reason: never a stack, never a 5xx, and nothing is changed."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from duly.domain.errors import Unavailable
from tests.http.site import DAILY, Site, is_problem

URL = "/api/v1/schedules"
JSON = {"Content-Type": "application/json"}
LOADED = b'{"target":"greet","cron":"0 9 * * *","pool":"wide","input":%s}'


async def _nothing_is_changed(site: Site) -> None:
    assert (await site.local.get(URL)).json()["items"] == []


@pytest.mark.req("GRAPH-11", error=True)
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        LOADED % (b"[" * 200_000 + b"]" * 200_000),
        LOADED % b'{"a":1,"a":2}',
        b'{"target":"greet","target":"other","cron":"0 9 * * *"}',
        LOADED % b'{"a":NaN}',
        LOADED % b'{"a":Infinity}',
        LOADED % b'{"a":1e999}',
        LOADED % (b'{"a":%s}' % (b"9" * 5_000)),
        LOADED % b'{"a":9223372036854775808}',
        LOADED % b'{"a":"\\ud800"}',
        LOADED % b'{"\\udc00":1}',
        LOADED % b'{"a":"\\u0000"}',
        LOADED % (b'{"a":' * 70 + b"1" + b"}" * 70),
        LOADED % b"[1]",
        LOADED % b"null",
    ],
    ids=lambda body: body[:40].decode("ascii", "replace"),
)
async def test_a_body_that_two_readers_could_read_differently_is_refused(quick_site: Site, body: bytes) -> None:
    answer = await quick_site.local.post(URL, content=body, headers=JSON)

    assert answer.status_code in (400, 422)
    is_problem(answer, answer.status_code)
    await _nothing_is_changed(quick_site)


@pytest.mark.req("GRAPH-11", error=True)
@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "0-10000000 * * * *"},
        {"cron": "0 0 30 2 *"},
        {"cron": "* " * 400_000},
        {"cron": "@reboot"},
        {"cron": "0 9 * * *\r\nX-Evil: 1"},
        {"timezone": "../../etc/passwd"},
        {"timezone": "Europe/Lond\u043en"},
        {"timezone": "utc"},
        {"timezone": "Factory"},
        {"timezone": "posixrules"},
        {"timezone": "UTC\0"},
        {"cron": None, "every": "0s"},
        {"cron": None, "every": "-5m"},
        {"cron": None, "every": "NaN"},
        {"cron": None, "every": "1000000000000s"},
        {"cron": None, "every": 60},
        {"cron": None, "at": "0001-01-01T00:00:00Z"},
        {"cron": None, "at": "0001-01-01T00:00:00+23:59"},
        {"cron": None, "at": "9999-12-31T23:59:59-23:59"},
        {"cron": None, "at": 4_000_000_000},
        {"start_at": "9999-12-31T23:59:59Z"},
        {"end_at": "0001-01-01T00:00:00Z"},
        {"priority": 32_768},
        {"priority": 1.0},
        {"retry": {"max_attempts": 1_001}},
        {"retry": {"max_attempts": True}},
        {"timeout_ms": 0},
        {"jitter_ms": -1},
        {"catch_up_cap": 10**18},
        {"target": ""},
        {"target": "a\r\nb"},
        {"target": "a" * 65},
        {"id": ""},
        {"id": "a\nb"},
        {"id": "\u202ea"},
        {"id": "x" * 161},
        {"id": ".."},
        {"id": "preview"},
        {"id": 7},
        {"pool": "a\0"},
        {"enabled": "false"},
        {"enabled": None},
        {"x" * 500_000: 1},
        {f"field{number}": number for number in range(1_000)},
    ],
    ids=lambda fields: ascii(fields)[:50],
)
async def test_what_means_nothing_is_refused(quick_site: Site, fields: dict[str, Any]) -> None:
    problem = is_problem(await quick_site.local.post(URL, json={**DAILY, **fields}), 422)

    assert problem["errors"]
    assert len(problem["detail"]) < 2_000
    await _nothing_is_changed(quick_site)


async def test_a_body_too_large_is_refused_before_it_is_read(quick_site: Site) -> None:
    pieces = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal pieces
        for _ in range(10_000):
            pieces += 1
            yield b" " * 65_536

    is_problem(await quick_site.local.post(URL, content=b" " * 1_048_577, headers=JSON), 413, "body_too_large")
    # A length that lies is the server's business; a body in pieces has none.
    chunked = await quick_site.local.post(URL, content=endless(), headers={**JSON, "Transfer-Encoding": "chunked"})
    is_problem(chunked, 413, "body_too_large")
    assert pieces < 30


async def test_what_is_not_json_is_refused(quick_site: Site) -> None:
    text = b'{"target":"greet","cron":"0 9 * * *"}'

    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        is_problem(await quick_site.local.post(URL, content=text, headers={"Content-Type": kind}), 415)
    packed = await quick_site.local.post(URL, content=text, headers={**JSON, "Content-Encoding": "gzip"})
    is_problem(packed, 415, "unsupported_media_type")
    await _nothing_is_changed(quick_site)


@pytest.mark.parametrize("name", ["%00", "a%0ab", "%e2%80%ae", "x" * 256])
@pytest.mark.parametrize("noun", ["schedules", "runs", "jobs", "pools"])
async def test_ids_that_nothing_can_have(site: Site, noun: str, name: str) -> None:
    answer = await site.local.get(f"/api/v1/{noun}/{name}")

    assert answer.status_code in (404, 422)
    is_problem(answer, answer.status_code)


async def test_paths_and_methods_that_are_not_there(quick_site: Site) -> None:
    nowhere = is_problem(await quick_site.local.get("/api/v1/nothing"), 404, "not_found")
    assert "/docs" in nowhere["detail"]
    is_problem(await quick_site.local.get("/api/v1/schedules/"), 404)
    for path, methods in (
        (URL, "GET, POST"),
        (f"{URL}/a", "DELETE, GET, PATCH"),
        ("/healthz", "GET"),
        (f"{URL}/preview", "POST"),
    ):
        wrong = await quick_site.local.put(path, json={})
        is_problem(wrong, 405, "method_not_allowed")
        assert wrong.headers["allow"] == methods


async def test_a_request_id_is_echoed_if_it_is_one(quick_site: Site) -> None:
    assert (await quick_site.local.get("/healthz", headers={"X-Request-ID": "abc-1"})).headers[
        "x-request-id"
    ] == "abc-1"
    for bad in ("a b", "x" * 129, "<script>"):
        drawn = (await quick_site.local.get("/healthz", headers={"X-Request-ID": bad})).headers["x-request-id"]
        assert drawn.startswith("req_")


async def test_a_failure_is_logged_once_and_told_without_its_stack(
    quick_site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> bytes:
        raise RuntimeError("secret detail")

    quick_site.api.state.metrics = broken
    with caplog.at_level(logging.ERROR):
        answer = await quick_site.local.get("/metrics")

    problem = is_problem(answer, 500, "internal_error")
    assert "secret detail" not in answer.text
    (record,) = caplog.records
    assert problem["request_id"] in record.getMessage()


async def test_a_store_that_cannot_answer_is_503_with_a_time_to_wait(quick_site: Site) -> None:
    async def away() -> bytes:
        raise Unavailable("the store is away")

    quick_site.api.state.metrics = away
    answer = await quick_site.local.get("/metrics")

    is_problem(answer, 503, "unavailable")
    assert answer.headers["retry-after"] == "1"


async def test_a_pool_that_is_not_there_is_404_in_a_path_and_422_in_a_body(quick_site: Site) -> None:
    is_problem(await quick_site.local.get("/api/v1/pools/none"), 404, "unknown_pool")
    is_problem(await quick_site.local.patch("/api/v1/pools/none", json={"slots": 1}), 404, "unknown_pool")
    is_problem(await quick_site.local.post(URL, json={**DAILY, "pool": "none"}), 422, "unknown_pool")


async def test_a_pool_is_changed_where_it_is_named(site: Site) -> None:
    changed = await site.local.patch("/api/v1/pools/wide", json={"slots": 7, "mode": "paused"})

    assert (changed.json()["slots"], changed.json()["mode"], changed.json()["prefetch"]) == (7, "paused", 0)
    assert (await site.local.get("/api/v1/pools/wide")).json() == changed.json()
    for bad in ({"slots": -1}, {"mode": "odd"}, {"used": 3}, {"name": "x"}, {"ageing_ms": 0}):
        is_problem(await site.local.patch("/api/v1/pools/wide", json=bad), 422)
    assert (await site.local.get("/api/v1/pools/wide")).json() == changed.json()
