"""The API's description as a page to read: made here, of nothing but HTML and a few rules of style."""

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from duly.http.description import PROBLEMS, TAGS, Operation, operations
from duly.http.door import NOBODY, ROLE
from duly.http.examples import ADDRESS, curl_of

_STYLE = files("duly.http").joinpath("docs_page.css").read_text(encoding="utf-8")
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
SECURITY_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
_ROLES = {
    NOBODY: "Needs no token.",
    "admin": "For admins.",
    "viewer": "For every role.",
    "operator": "For operators and admins.",
}


def page_of(schema: dict[str, Any], address: str = ADDRESS) -> str:
    nouns = [(tag, list(found)) for tag, found in groupby(operations(schema), lambda each: each[2]["tags"][0])]
    schemas = schema["components"]["schemas"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Duly API</title><style>{_STYLE}</style></head><body>"
        '<a class="skip" href="#content">Skip to the content</a><div class="frame">'
        f'{_navigation(nouns)}<main id="content">{_beginning(schema, address)}'
        f"{''.join(_noun(tag, found, schemas, address) for tag, found in nouns)}"
        '<h2 class="noun" id="schemas">Schemas</h2>'
        f"{''.join(_schema(*each) for each in sorted(schemas.items()))}"
        "</main></div></body></html>"
    )


def _navigation(nouns: list[tuple[str, list[Operation]]]) -> str:
    groups: list[tuple[str, str, list[Operation]]] = [
        ("start", "Start", []),
        ("errors", "Errors", []),
        *((tag, tag, found) for tag, found in nouns),
    ]
    return (
        '<nav aria-label="Contents">'
        + "".join(
            f'<h2><a href="#{_e(name)}">{_e(title)}</a></h2>'
            + (f"<ul>{''.join(_link(operation) for _, _, operation in found)}</ul>" if found else "")
            for name, title, found in [*groups, ("schemas", "Schemas", [])]
        )
        + "</nav>"
    )


def _link(operation: dict[str, Any]) -> str:
    return f'<li><a href="#{_e(operation["operationId"])}">{_e(operation["summary"])}</a></li>'


def _beginning(schema: dict[str, Any], address: str) -> str:
    problems = "".join(f"<dt>{status}</dt><dd>{_text(said)}</dd>" for status, said in PROBLEMS.items())
    return (
        f'<header id="start"><h1>Duly API {_e(schema["info"]["version"])}</h1>'
        "<p>Schedules say when; each of their slots opens a run; a run's job is done by a worker, in a pool.</p>"
        f"<p>{_text(schema['info']['description'])}</p>"
        f"{_pre(f'curl {address}/api/v1/me')}<p>On this machine callers need no token. From elsewhere, add "
        "<code>-H 'Authorization: Bearer duly_…'</code>. For programs, all of this is in "
        '<a href="/openapi.json">openapi.json</a>.</p></header>'
        '<h2 class="noun" id="errors">Errors</h2><p>Every one is a <a href="#schema-Problem">Problem</a>, with a '
        "<code>code</code> that stays the same. They mean the same wherever they are met; operations list only which "
        f'they can have.</p><dl class="short">{problems}</dl>'
    )


def _noun(tag: str, found: list[Operation], schemas: dict[str, Any], address: str) -> str:
    parts = "".join(
        _operation(path, method, operation, curl_of(path, method, operation, schemas, address))
        for path, method, operation in found
    )
    return f'<h2 class="noun" id="{_e(tag)}">{_e(tag)}</h2><p>{_text(TAGS[tag])}</p>{parts}'


def _operation(path: str, method: str, operation: dict[str, Any], example: str) -> str:
    name = _e(operation["operationId"])
    marked = operation.get(ROLE, "viewer" if method == "get" else "operator")
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><h3 id="{name}-title">{_e(operation["summary"])}</h3>'
        f'<p class="call"><span class="method {method}">{method.upper()}</span><code>{_e(path)}</code></p>'
        f"{_paragraphs(operation.get('description', ''))}{_pre(example)}"
        f"{_parameters(operation.get('parameters', []))}{_body(operation.get('requestBody'))}"
        f'{_answers(operation["responses"])}<p class="soft">{_ROLES[marked]} {_failures(operation["responses"])}</p>'
        "</section>"
    )


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<dt><code>{_e(each['name'])}</code></dt><dd>{_text(each.get('description', ''))} "
        f'<span class="soft">{_kind(each["schema"])}, in the {_e(each["in"])}</span></dd>'
        for each in parameters
    )
    return f"<h4>Parameters</h4><dl>{rows}</dl>" if rows else ""


def _body(body: dict[str, Any] | None) -> str:
    if body is None:
        return ""
    return "".join(f"<h4>Body</h4><p>{_kind(media['schema'])}</p>" for media in body["content"].values())


def _answers(responses: dict[str, Any]) -> str:
    rows = "".join(
        f"<dt>{_e(status)} {_contents(said)}</dt><dd>{_text(said['description'])}</dd>"
        for status, said in sorted(responses.items())
        if status < "400"
    )
    return f"<h4>Answers</h4><dl>{rows}</dl>"


def _failures(responses: dict[str, Any]) -> str:
    statuses = ", ".join(_e(status) for status in sorted(responses) if status >= "400")
    return f'Can fail with {statuses}: see <a href="#errors">Errors</a>.'


def _contents(response: dict[str, Any]) -> str:
    return "<br>".join(
        _kind(media.get("schema", {})) if kind == "application/json" else f"<code>{_e(kind)}</code>"
        for kind, media in response.get("content", {}).items()
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<dt><code>{_e(field)}</code></dt><dd>{_text(of.get('description', ''))}{_example(of)} "
        f'<span class="soft">{_kind(of)}</span></dd>'
        for field, of in schema.get("properties", {}).items()
    )
    values = " ".join(f"<code>{_e(value)}</code>" for value in schema.get("enum", []))
    example = "".join(_pre(json.dumps(each, indent=2, ensure_ascii=False)) for each in schema.get("examples", []))
    return (
        f'<section id="schema-{_e(name)}"><h3>{_e(name)}</h3>{_paragraphs(schema.get("description", ""))}'
        f"{f'<dl>{rows}</dl>' if rows else ''}{f'<p>{values}</p>' if values else ''}{example}</section>"
    )


def _example(schema: dict[str, Any]) -> str:
    examples = schema.get("examples", [])
    return "".join(f" <code>{_e(json.dumps(each, ensure_ascii=False))}</code>" for each in examples)


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = _e(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    kind = schema.get("type", "anything")
    return _e(f"{kind} ({schema['format']})" if "format" in schema else str(kind))


def _pre(text: str) -> str:
    """Wide ones scroll, and whoever has only a keyboard can scroll them, too."""
    return f'<pre tabindex="0"><code>{_e(text)}</code></pre>'


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_text(part)}</p>" for part in text.split("\n\n") if part.strip())


def _text(text: str) -> str:
    """Escaped, with what stands in backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _e(value: object) -> str:
    return escape(str(value))
