"""The API's description is kept beside it: what callers rely on changes only on purpose."""

import json
import re
from pathlib import Path

from duly.http.access import Access
from duly.http.api import create_api
from duly.http.description import operations
from duly.http.docs_page import page_of
from tests.http.site import Site

KEPT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
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
    assert not re.search(r"<script|<link|<img|https?://|url\(", answer.text)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    ids = re.findall(r' id="([^"]+)"', answer.text)
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r'href="#([^"]+)"', answer.text)) <= set(ids)


def test_the_page_escapes_what_it_shows() -> None:
    hostile = json.loads(json.dumps(SCHEMA).replace("Create a schedule", "<script>alert(1)</script>"))

    assert "<script" not in page_of(hostile)
