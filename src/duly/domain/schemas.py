"""Which params a template takes: a stated part of JSON Schema, in which nothing is passed over in silence."""

from collections.abc import Callable, Mapping
from typing import Any

from duly.domain.errors import InvalidInput
from duly.domain.payloads import Payload, json_of


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return _is_number(value) and (isinstance(value, int) or float(value).is_integer())  # type: ignore[arg-type]


_TYPES: dict[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, (list, tuple)),
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": _is_whole,
}


def schema_of(value: object, *, field: str) -> Payload:
    """Compact text of a schema; a keyword that is not understood would be a check that never fails."""
    text = json_of(value, field=field)
    _check_schema(value, field)
    return text


def check(value: object, schema: Mapping[str, Any], *, field: str) -> None:
    """Refuses a value that the schema, which `schema_of` has passed, does not allow."""
    _check_type(value, schema, field)
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        raise InvalidInput(field, "is none of the values allowed", fix=f"use one of {str(schema['enum'])[:200]}")
    if _is_number(value):
        _check_bounds(value, schema, field)
    if isinstance(value, dict):
        _check_object(value, schema, field)
    if isinstance(value, (list, tuple)) and "items" in schema:
        for index, item in enumerate(value):
            check(item, schema["items"], field=f"{field}[{index}]")


def _check_type(value: object, schema: Mapping[str, Any], field: str) -> None:
    if "type" in schema:
        names = _names(schema["type"])
        if not any(_TYPES[name](value) for name in names):
            raise InvalidInput(field, f"is {_kind(value)}", fix=f"the template asks for {' or '.join(names)}")


def _check_bounds(value: Any, schema: Mapping[str, Any], field: str) -> None:
    if "minimum" in schema and value < schema["minimum"]:
        raise InvalidInput(field, f"{value} is too small", fix=f"use {schema['minimum']} or more")
    if "maximum" in schema and value > schema["maximum"]:
        raise InvalidInput(field, f"{value} is too large", fix=f"use {schema['maximum']} or less")


def _check_object(value: dict[str, Any], schema: Mapping[str, Any], field: str) -> None:
    for name in schema.get("required", ()):
        if name not in value:
            raise InvalidInput(f"{field}.{name}", "is missing", fix="the template requires it")
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            check(item, known[name], field=f"{field}.{name}")
        elif others is False:
            raise InvalidInput(f"{field}.{name}", "is not known to the template", fix="leave it out")
        elif others is not True:
            check(item, others, field=f"{field}.{name}")


def _check_schema(schema: object, field: str) -> None:
    if not isinstance(schema, dict):
        raise InvalidInput(field, f"is {_kind(schema)}", fix="a schema is a JSON object")
    for keyword, given in schema.items():
        rule = _KEYWORDS.get(keyword)
        if rule is None:
            known = ", ".join(_KEYWORDS)
            raise InvalidInput(f"{field}.{keyword}", "is a keyword Duly does not know", fix=f"use {known}")
        rule(given, f"{field}.{keyword}")


def _types(given: object, field: str) -> None:
    names = _names(given)
    if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
        raise InvalidInput(field, "is no type of JSON", fix=f"use one of {', '.join(_TYPES)}, or a list of them")


def _properties(given: object, field: str) -> None:
    if not isinstance(given, dict):
        raise InvalidInput(field, f"is {_kind(given)}", fix="name each property and give its schema")
    for name, schema in given.items():
        _check_schema(schema, f"{field}.{name}")


def _required(given: object, field: str) -> None:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise InvalidInput(field, "is no list of names")


def _enum(given: object, field: str) -> None:
    if not isinstance(given, list) or not given:
        raise InvalidInput(field, "is no list of values")


def _bound(given: object, field: str) -> None:
    if not _is_number(given):
        raise InvalidInput(field, f"is {_kind(given)}", fix="a bound is a number")


def _others(given: object, field: str) -> None:
    if not isinstance(given, bool):
        _check_schema(given, field)


def _says_nothing(given: object, field: str) -> None:
    if not isinstance(given, str):
        raise InvalidInput(field, f"is {_kind(given)}", fix="it is a text for people")


_KEYWORDS: dict[str, Callable[[object, str], None]] = {
    "type": _types,
    "properties": _properties,
    "required": _required,
    "enum": _enum,
    "minimum": _bound,
    "maximum": _bound,
    "items": _check_schema,
    "additionalProperties": _others,
    "title": _says_nothing,
    "description": _says_nothing,
}


def _names(given: object) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _same(one: object, other: object) -> bool:
    """As JSON says it: `true` is not 1, also not inside lists and objects, but 1.0 is."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return one == other


def _kind(value: object) -> str:
    """In the words of the schema, which is what the reader wrote."""
    named = next((name for name, fits in _TYPES.items() if fits(value)), type(value).__name__)
    return named if named == "null" else f"{'an' if named[0] in 'aio' else 'a'} {named}"
