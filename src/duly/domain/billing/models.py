"""Which models cost nothing: a setting, since no table knows what runs on somebody's own machine."""

from collections.abc import Iterable
from dataclasses import dataclass

from duly.domain.billing.receipts import LONGEST_MODEL
from duly.domain.errors import InvalidInput
from duly.domain.texts import text_of

DEMO_MODEL = "offline:demo"
"""What the demo's graphs ask; it costs something, so that there is something to see."""


@dataclass(frozen=True, slots=True)
class FreeModels:
    """Whole names, and beginnings that are marked by a star at their end: `ollama:*`."""

    names: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ()

    def __contains__(self, model: str) -> bool:
        return model in self.names or model.startswith(self.beginnings)


def free_models_of(given: Iterable[str], *, field: str) -> FreeModels:
    names, beginnings = set(), set()
    for name in given:
        text_of(name, field=field, longest=LONGEST_MODEL)
        if "*" in name[:-1]:
            raise InvalidInput(field, f"{name[:40]!r} has a star inside", fix="put it at the end")
        if name == "*":
            raise InvalidInput(field, "would make every model free", fix="name at least a provider: ollama:*")
        if name.endswith("*"):
            beginnings.add(name[:-1])
        else:
            names.add(name)
    return FreeModels(frozenset(names), tuple(sorted(beginnings)))
