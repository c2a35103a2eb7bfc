"""Objects of graph libraries as JSON: messages, models, dataclasses; what has no JSON is told by its type's name."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any
from uuid import UUID

_DEEPEST = 60


def plain(value: Any, *, depth: int = 0) -> Any:
    """JSON of a value; an object that has none becomes a text in angle brackets, for a reader to see."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value.value if isinstance(value, Enum) else value
    if depth > _DEEPEST:
        return "<nested too deeply>"
    if isinstance(value, Mapping):
        return {str(name): plain(item, depth=depth + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth=depth + 1) for item in value]
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return plain(value.value, depth=depth + 1)
    return _of_object(value, depth)


def _of_object(value: Any, depth: int) -> Any:
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        return plain(dump(exclude_defaults=True) | _named(value), depth=depth + 1)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name), depth=depth + 1) for each in fields(value)}
    return f"<{type(value).__name__}>"


def _named(value: Any) -> dict[str, Any]:
    """A message's type is a default, and the one thing that must not be left out."""
    kind = getattr(value, "type", None)
    return {"type": kind} if isinstance(kind, str) else {}
