"""Which graphs there are: ids, and where each is found. It is loaded when it first runs, and nowhere else."""

import importlib
import re
from dataclasses import dataclass, field
from typing import Any

from duly.domain.errors import InvalidInput
from duly.domain.executions import GraphFailed, UnknownGraph, graph_id_of
from duly.graphs.threads import in_own_thread

_ADDRESS = re.compile(r"https?://[!-~]{1,2000}", re.ASCII)
_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclass(slots=True)
class Registry:
    """A graph is registered as `"module:attr"`, or as the object itself where everything is one process."""

    _found_at: dict[str, Any] = field(default_factory=dict)
    _loaded: dict[str, Any] = field(default_factory=dict)
    _actions: dict[str, Any] = field(default_factory=dict)

    def add(self, graph_id: str, found_at: Any) -> None:
        provider = graph_id_of(graph_id).partition(":")[0]
        if graph_id in self._found_at:
            raise InvalidInput("graph_id", f"{graph_id!r} is registered already", fix="give one of them another name")
        is_text = isinstance(found_at, str)
        if provider == "http" and not (is_text and _ADDRESS.fullmatch(found_at)):
            raise InvalidInput("graph", f"{str(found_at)[:80]!r} is no address", fix="write it as https://…")
        if is_text and provider != "http" and _PLACE.fullmatch(found_at) is None:
            raise InvalidInput("graph", f"{found_at[:80]!r} is no place", fix='write it as "module:attr"')
        self._found_at[graph_id] = found_at

    def __len__(self) -> int:
        return len(self._found_at)

    def __contains__(self, graph_id: str) -> bool:
        return graph_id in self._found_at

    def place(self, graph_id: str) -> Any:
        if graph_id not in self._found_at:
            raise UnknownGraph(graph_id)
        return self._found_at[graph_id]

    async def load(self, graph_id: str) -> Any:
        """The object itself; importing may take seconds, so it is done aside."""
        place = self.place(graph_id)
        if not isinstance(place, str):
            return place
        if graph_id not in self._loaded:
            self._loaded[graph_id] = await in_own_thread(lambda: _imported(graph_id, place), name=f"load {graph_id}")
        return self._loaded[graph_id]

    def add_action(self, name: str, found_at: Any) -> None:
        """What nodes of workflows may name, as `"module:attr"` or as the function itself."""
        if name in self._actions:
            raise InvalidInput("action", f"{name!r} is registered already", fix="give one of them another name")
        if isinstance(found_at, str) and _PLACE.fullmatch(found_at) is None:
            raise InvalidInput("action", f"{found_at[:80]!r} is no place", fix='write it as "module:attr"')
        if not isinstance(found_at, str) and not callable(found_at):
            raise InvalidInput("action", f"is a {type(found_at).__name__}", fix="give a function, or where it is")
        self._actions[name] = found_at

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self._actions)

    async def action(self, name: str) -> Any:
        """The function itself."""
        if name not in self._actions:
            raise GraphFailed(f"this service has no action {name!r}", error_code="unknown_action")
        place = self._actions[name]
        if not isinstance(place, str):
            return place
        known = f"action {name}"
        if known not in self._loaded:
            self._loaded[known] = await in_own_thread(lambda: _imported(known, place), name=f"load {known}")
        return self._loaded[known]


def _imported(graph_id: str, place: str) -> Any:
    module, _, path = place.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise GraphFailed(
            f"{graph_id} cannot be loaded from {place!r}: {why}", error_code="graph_unloadable"
        ) from error
    return found
