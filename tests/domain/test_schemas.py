"""Schemas of params: a stated part of JSON Schema, held against a plain reading of the standard."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.errors import InvalidInput
from duly.domain.payloads import value_of
from duly.domain.schemas import check, schema_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text("ab1ß", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "object", "array", "number", "integer", "string"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2),
            "enum": st.lists(JSON, min_size=1, max_size=3),
            "minimum": st.integers(-5, 5),
            "maximum": st.floats(-5, 5),
            "required": st.lists(st.sampled_from("abc"), max_size=2),
            "title": st.text("ab", max_size=3),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "items": inner,
            "additionalProperties": st.booleans() | inner,
        },
    ),
    max_leaves=4,
)


def allowed(value: Any, schema: dict[str, Any]) -> bool:
    """The standard, read aloud."""
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    mine = {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
        "string": isinstance(value, str),
        "number": number,
        "integer": number and value == int(value),
    }
    others = schema.get("additionalProperties", True)
    return (
        (not kinds or any(mine[kind] for kind in kinds))
        and ("enum" not in schema or any(spelled(value) == spelled(one) for one in schema["enum"]))
        and not (number and ("minimum" in schema and value < schema["minimum"]))
        and not (number and ("maximum" in schema and value > schema["maximum"]))
        and not (mine["object"] and any(name not in value for name in schema.get("required", [])))
        and not (mine["array"] and "items" in schema and not all(allowed(item, schema["items"]) for item in value))
        and not (
            mine["object"]
            and not all(
                allowed(item, schema["properties"][name])
                if name in schema.get("properties", {})
                else others is True or (others is not False and allowed(item, others))
                for name, item in value.items()
            )
        )
    )


def spelled(value: Any) -> str:
    """Equal texts for equal JSON values."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name!r}:{spelled(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spelled, value)) + "]"
    return repr(value) if isinstance(value, (bool, str, type(None))) else repr(float(value) + 0.0)


@given(JSON, SCHEMAS)
def test_what_the_standard_allows_is_allowed_and_nothing_else(value: Any, schema: dict[str, Any]) -> None:
    assert value_of(schema_of(schema, field="schema")) == schema
    if allowed(value, schema):
        check(value, schema, field="params")
        return
    with pytest.raises(InvalidInput, match=r"^params"):
        check(value, schema, field="params")


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"pattern": "a+"}, "schema.pattern"),
        ({"properties": {"a": {"minLength": 3}}}, "schema.properties.a.minLength"),
        ({"items": {"$ref": "#"}}, "schema.items.$ref"),
        ({"additionalProperties": {"format": "date"}}, "schema.additionalProperties.format"),
        ({"type": "text"}, "schema.type"),
        ({"type": []}, "schema.type"),
        ({"type": None}, "schema.type"),
        ({"required": "a"}, "schema.required"),
        ({"enum": []}, "schema.enum"),
        ({"minimum": "1"}, "schema.minimum"),
        ({"maximum": True}, "schema.maximum"),
        ({"properties": []}, "schema.properties"),
        ({"items": [{}]}, "schema.items"),
        ({"title": 1}, "schema.title"),
        ([], "schema"),
        (None, "schema"),
    ],
)
def test_a_schema_that_is_not_understood_is_refused(schema: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        schema_of(schema, field="schema")

    assert refusal.value.field == field


def test_a_refusal_says_where() -> None:
    schema = {"properties": {"to": {"items": {"type": "string"}}}}

    with pytest.raises(InvalidInput, match=r"params\.to\[1\]: is a number \(the template asks for string\)"):
        check({"to": ["you", 3]}, schema, field="params")
