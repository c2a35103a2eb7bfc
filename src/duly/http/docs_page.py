"""The API's description as a page to read: made here, of nothing but HTML and a few rules of style."""

import base64
import hashlib
import json
from html import escape
from typing import Any

from duly.http.description import operations

_STYLE = """
:root{color-scheme:light dark;--line:#8886;--code:#8882}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
pre,code{font:14px/1.4 ui-monospace,monospace;background:var(--code);border-radius:4px;padding:.1em .3em}
pre{padding:.75rem;overflow:auto}
section{border-top:1px solid var(--line);padding-top:.5rem;margin-top:1.5rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0}
th{font-weight:600}a:focus-visible,summary:focus-visible{outline:3px solid;outline-offset:2px}
nav ul{columns:2;padding-left:1.2rem}@media(max-width:40rem){nav ul{columns:1}}
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
SECURITY_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}


def page_of(schema: dict[str, Any]) -> str:
    found = list(operations(schema))
    links = "".join(f'<li><a href="#{_e(op["operationId"])}">{_e(op["summary"])}</a></li>' for _, _, op in found)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Duly API</title><style>{_STYLE}</style></head><body>"
        f"<header><h1>Duly API {_e(schema['info']['version'])}</h1><p>{_text(schema['info']['description'])}</p>"
        '<p>For programs: <a href="/openapi.json">openapi.json</a></p></header>'
        f'<nav aria-label="Operations"><h2>Operations</h2><ul>{links}</ul></nav><main>'
        f"{''.join(_operation(*each) for each in found)}"
        f"<h2>Schemas</h2>{''.join(_schema(*each) for each in sorted(schema['components']['schemas'].items()))}"
        "</main></body></html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    name = _e(operation["operationId"])
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><h3 id="{name}-title">{_e(operation["summary"])}</h3>'
        f"<p><code>{method.upper()} {_e(path)}</code></p><p>{_text(operation.get('description', ''))}</p>"
        f"{_parameters(operation.get('parameters', []))}{_body(operation.get('requestBody'))}"
        f"{_responses(operation['responses'])}</section>"
    )


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f'<tr><th scope="row"><code>{_e(each["name"])}</code></th><td>{_e(each["in"])}</td>'
        f"<td>{_kind(each['schema'])}</td><td>{_text(each.get('description', ''))}</td></tr>"
        for each in parameters
    )
    return f"<h4>Parameters</h4><table>{_head('Name', 'In', 'Type', 'Means')}{rows}</table>" if rows else ""


def _body(body: dict[str, Any] | None) -> str:
    if body is None:
        return ""
    return "<h4>Body</h4>" + "".join(f"<p>{_kind(media['schema'])}</p>" for media in body["content"].values())


def _responses(responses: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_e(status)}</th><td>{_text(said["description"])}</td><td>{_contents(said)}</td></tr>'
        for status, said in sorted(responses.items())
    )
    return f"<h4>Answers</h4><table>{_head('Status', 'Means', 'Body')}{rows}</table>"


def _contents(response: dict[str, Any]) -> str:
    return "<br>".join(
        f"<code>{_e(kind)}</code> {_kind(media.get('schema', {}))}"
        for kind, media in response.get("content", {}).items()
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row"><code>{_e(field)}</code></th><td>{_kind(of)}</td>'
        f"<td>{_text(of.get('description', ''))}{_example(of)}</td></tr>"
        for field, of in schema.get("properties", {}).items()
    )
    values = " ".join(f"<code>{_e(value)}</code>" for value in schema.get("enum", []))
    example = "".join(
        f"<h4>Example</h4><pre>{_e(json.dumps(each, indent=2, ensure_ascii=False))}</pre>"
        for each in schema.get("examples", [])
    )
    table = f"<table>{_head('Field', 'Type', 'Means')}{rows}</table>" if rows else ""
    return (
        f'<section id="schema-{_e(name)}"><h3>{_e(name)}</h3><p>{_text(schema.get("description", ""))}</p>'
        f"{table}<p>{values}</p>{example}</section>"
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


def _head(*names: str) -> str:
    return "<thead><tr>" + "".join(f'<th scope="col">{name}</th>' for name in names) + "</tr></thead>"


def _text(text: str) -> str:
    """Escaped, with what stands in backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _e(value: object) -> str:
    return escape(str(value))
