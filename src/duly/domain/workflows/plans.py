"""What a document of a workflow says, once it was read."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duly.domain.cadence import Cadence
from duly.domain.dags import Node, params_needed
from duly.domain.errors import InvalidInput
from duly.domain.executions import LONGEST_TIMEOUT_MS, OnCrash
from duly.domain.payloads import Payload, payload_of, value_of
from duly.domain.policies import Policies


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One that is `schedule_based`; others are kept in the document for whoever understands them."""

    id: str
    cadence: Cadence
    policies: Mapping[str, Any]
    params: Mapping[str, Any]

    def policies_over(self, defaults: Policies) -> Policies:
        return Policies(**{**{name: getattr(defaults, name) for name in Policies.__slots__}, **self.policies})


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """An executor that is called with the document; with `callback` it says later how the run ended."""

    url: str
    callback: bool
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a document says. All that may be wrong with it was refused when it was read."""

    name: str
    version: int | None
    nodes: tuple[Node, ...]
    triggers: tuple[Trigger, ...]
    params: Mapping[str, Any]
    on_crash: OnCrash
    timeout_ms: int
    max_cost: str | None
    concurrency: int
    executor: Elsewhere | None
    document: Payload
    """Names in order, without the version: what says the same is written alike."""

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.document.encode()).hexdigest()

    @property
    def actions(self) -> Mapping[str, str]:
        """The registered actions it names, each with the first node that does."""
        named: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node.action, str):
                named.setdefault(node.action, node.id)
        return named

    @property
    def longest_ms(self) -> int:
        """An executor elsewhere fails by its own deadline, not because whoever waits for it gives up before."""
        if self.executor is None:
            return self.timeout_ms
        return min(max(self.timeout_ms, self.executor.deadline_ms + 60_000), LONGEST_TIMEOUT_MS)

    def input_for(self, params: Mapping[str, Any] | None, *, field: str = "params") -> dict[str, Any]:
        """The params of a run over the document's own; one that a node needs and nobody gives is refused."""
        given = {**self.params, **value_of(payload_of(None if params is None else dict(params), field=field))}
        for name, where in params_needed(self.nodes).items():
            if name not in given:
                fix = f"give it in {field}, or a default in the document's params"
                raise InvalidInput(f"{field}.{name}", f"is missing: {where} refers to it", fix=fix)
        return given
