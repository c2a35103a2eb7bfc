"""The API's description is kept beside it: what callers rely on changes only on purpose."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from duly.domain.ids import PoolName
from duly.domain.pools import Pool
from duly.domain.tokens import Role
from duly.http.access import Access
from duly.http.api import create_api
from duly.http.description import TAGS, operations
from duly.http.docs_page import page_of
from duly.http.examples import curl_of
from tests.http.curl import request_of
from tests.http.site import Site

DOCS = Path(__file__).parents[2] / "docs"
KEPT = DOCS / "reference" / "openapi.json"
SCHEMA = create_api(None, access=Access(is_local=True)).openapi()  # type: ignore[arg-type] # only described


def test_the_kept_description_is_that_of_the_api() -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))

    assert kept == json.loads(json.dumps(SCHEMA)), "the API has changed; if that is meant, run: python scripts/openapi"


def test_every_operation_is_named_described_and_lists_its_problems() -> None:
    names = [operation["operationId"] for _, _, operation in operations(SCHEMA)]

    assert len(set(names)) == len(names)
    assert SCHEMA["openapi"].startswith("3.1")
    for path, method, operation in operations(SCHEMA):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", operation["operationId"]), path
        assert operation["summary"]
        assert operation["tags"]
        problems = {status: said for status, said in operation["responses"].items() if status >= "400"}
        assert {"413", "500", "503"} <= set(problems)
        for said in problems.values():
            assert said["content"] == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
        if method == "post":
            assert "Idempotency-Key" in [parameter["name"] for parameter in operation["parameters"]]


def test_bodies_have_examples() -> None:
    for _, _, operation in operations(SCHEMA):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            options = media["schema"].get("anyOf", [media["schema"]])
            name = options[0]["$ref"].rpartition("/")[2]
            shape = SCHEMA["components"]["schemas"][name]
            assert shape.get("examples") or all("examples" in field for field in shape["properties"].values()), name


def test_every_reference_leads_somewhere() -> None:
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(SCHEMA)))

    assert names <= set(SCHEMA["components"]["schemas"])


async def test_the_page_shows_every_operation_and_loads_nothing(quick_site: Site) -> None:
    answer = await quick_site.local.get("/docs")

    for path, _, operation in operations(SCHEMA):
        assert f'id="{operation["operationId"]}"' in answer.text
        assert path in answer.text
    # Examples may name addresses; nothing of the page leads to any.
    assert not re.search(r"<script|<link|<img|(src|href|action)=.https?://|url\(", answer.text)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    ids = re.findall(r' id="([^"]+)"', answer.text)
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r'href="#([^"]+)"', answer.text)) <= set(ids)


async def test_the_page_is_in_order_and_says_errors_once(quick_site: Site) -> None:
    text = (await quick_site.local.get("/docs")).text

    nouns = re.findall(r'<h2 class="noun" id="([^"]+)"', text)
    assert nouns == ["errors", *TAGS, "schemas"]
    first = [text.index(f'<section id="{name}"') for name in ("create_schedule", "list_schedules", "get_schedule")]
    assert first == sorted(first)
    assert text.count("The body is larger than 1 MiB.") == 1
    assert "Successful Response" not in json.dumps(SCHEMA)
    assert "curl 127.0.0.1:8000/api/v1/schedules" in text


@pytest.mark.parametrize("host", ["localhost:9", "evil<b>", "a b"])
async def test_examples_call_the_name_that_the_page_was_asked_by_if_it_is_one(quick_site: Site, host: str) -> None:
    page = await quick_site.client(quick_site.api, "http://127.0.0.1").get("/docs", headers={"Host": host})

    if host == "localhost:9":
        assert "curl localhost:9/api/v1/me" in page.text
    else:
        assert page.status_code == 421


OPERATIONS = [pytest.param(*each, id=each[2]["operationId"]) for each in operations(SCHEMA)]


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
async def test_every_example_is_a_request_that_is_understood(
    quick_site: Site, path: str, method: str, operation: dict[str, Any]
) -> None:
    sent = request_of(curl_of(path, method, operation, SCHEMA["components"]["schemas"]))
    assert sent["method"] == method.upper()

    # With a token: whoever has none makes none.
    answer = await (await quick_site.caller("root", Role.ADMIN)).request(**sent)

    # What it names need not be there; all else about it is right.
    is_missing = answer.status_code == 422 and answer.json()["code"].startswith("unknown_")
    assert is_missing or answer.status_code in (200, 201, 204, 404), answer.text


def test_the_page_escapes_what_it_shows() -> None:
    hostile = json.loads(json.dumps(SCHEMA).replace("Create a schedule", "<script>alert(1)</script>"))

    assert "<script" not in page_of(hostile)


async def test_the_lines_of_the_page_about_http_work_as_they_stand(quick_site: Site) -> None:
    await quick_site.queue.pools.define(Pool(name=PoolName("demo"), slots=8))
    lines = re.findall(r"^curl .*$", (DOCS / "http.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= 8

    for line in lines:
        if "/events" not in line:  # of a run whose id only its reader knows
            answer = await quick_site.local.request(**request_of(line))
            assert answer.status_code in (200, 201), (line, answer.text)
