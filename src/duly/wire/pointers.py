"""Where in a request a refused value stands, in the words of the request."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import BaseModel

from duly.domain.cadence import InvalidCron
from duly.domain.errors import InvalidInput
from duly.wire import cadences

# Where the core has another word than the request.
_BY_FIELD = {
    "kind": "target",
    "params": "input",
    "expr": "cron",
    "tz": "timezone",
    "interval": "every",
    "max_attempts": "retry/max_attempts",
    "backoff_ms": "retry/backoff_ms",
    "backoff_cap_ms": "retry/backoff_cap_ms",
}
_OF_NO_FIELD = frozenset({"instant", "expected_revision"})
_STEPS = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request could say in its body, and what it said."""

    shape: Any = None
    given: Mapping[str, Any] = field(default_factory=dict)

    def known(self, *steps: str | int) -> Collection[str]:
        """The fields that there are at a place of the body."""
        shape = _model_of(self.shape)
        for step in steps:
            found = None if shape is None else shape.model_fields.get(str(step))
            shape = None if found is None else _model_of(found.annotation)
        return () if shape is None else shape.model_fields


NOTHING = Asked()


def pointer_of(error: InvalidInput, asked: Asked = NOTHING) -> str:
    """A JSON Pointer into the body; empty for the whole of it."""
    if isinstance(error, InvalidCron):
        return "/cron"
    first, *others = _steps(error)
    if first in _OF_NO_FIELD:
        return ""
    return pointer_to(*_word(first, asked).split("/"), *others) if _word(first, asked) else ""


def said_of(error: InvalidInput, asked: Asked = NOTHING) -> str:
    """What is wrong, with the field called as the request calls it."""
    first, said = _steps(error)[0], str(error)
    word = _word(first, asked)
    return f"{word.replace('/', '.')}{said[len(first) :]}" if word and said.startswith(first) else said


def pointer_to(*steps: str | int) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def _steps(error: InvalidInput) -> list[str]:
    return _STEPS.findall(error.field.partition(", ")[0]) or [""]


def _word(name: str, asked: Asked) -> str:
    if name in asked.known():
        return name
    if name == "cadence":
        return next((each for each in cadences.FIELDS if asked.given.get(each) is not None), "")
    return _BY_FIELD.get(name, name)


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The shape that an annotation names, alone or beside null."""
    options = (annotation, *get_args(annotation))
    return next((each for each in options if isinstance(each, type) and issubclass(each, BaseModel)), None)
