"""What executes a graph: one call, a stream of what it tells, and a final result."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from duly.domain.executions import EventKind, GraphResult, ModelCall, Reply
from duly.domain.instants import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCaller:
    """Under whose name and at whose cost a graph runs."""

    user: str
    account: str
    virtual_key_id: str


def _any_model(_: str | None) -> None:
    """Of a run that may spend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCall:
    """`continues` asks to go on from what an earlier attempt left; `reply` is what its interrupt waited for.

    `check_lease` raises LeaseLost when this attempt is no longer sure to be the only one: to be called before money is
    spent. `check_model` does so, too, and raises MaySpendNothing before a call of a model that this run may not pay;
    one without a name is not known to be free. `token` is what the attempt's own writes must show; `traceparent` the
    span that whatever it calls is below.
    """

    run_id: str
    ingress_request_id: str
    graph_id: str
    input: Mapping[str, Any]
    messages: Sequence[Any] = ()
    model: str = "default"
    caller: GraphCaller
    attempt: int = 1
    token: int = 0
    deadline: Instant
    check_lease: Callable[[], None]
    continues: bool = False
    reply: Reply | None = None
    traceparent: str | None = None
    max_cost: int | None = None
    check_model: Callable[[str | None], None] = _any_model


@dataclass(frozen=True, slots=True)
class GraphEvent:
    """`data` is JSON; `model_call` is what a model was asked, with figures or without."""

    kind: EventKind
    data: Mapping[str, Any] = field(default_factory=dict)
    model_call: ModelCall | None = None


class GraphRun(Protocol):
    """A run succeeds only when its events were drained and its final result was awaited."""

    def __aiter__(self) -> AsyncIterator[GraphEvent]: ...

    async def final(self) -> GraphResult:
        """The result, once the events have ended; raises what made the graph fail."""

    async def aclose(self) -> None:
        """Lets go of a graph that is not drained any further."""


class GraphExecutor(Protocol):
    def knows(self, graph_id: str) -> bool: ...

    def run_graph(self, call: GraphCall) -> GraphRun:
        """Nothing runs before the events are asked for; raises UnknownGraph."""
