"""Sends a call to the provider that its graph's id begins with."""

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from duly.domain.executions import UnknownGraph
from duly.graphs.registry import Registry
from duly.graphs.telling import Telling, Told
from duly.ports.graphs import GraphCall

# Their graphs are in the store, which says when it runs whether there is such a one.
_STORED = frozenset({"dag"})


class Provider(Protocol):
    def run(self, call: GraphCall, registry: Registry) -> AsyncGenerator[Told, None]:
        """Events as they come, the result last."""


class Router:
    """`provider:name[@version]`: what stands before the colon says who runs it, the whole id which graph."""

    def __init__(self, registry: Registry, providers: Mapping[str, Provider]) -> None:
        self._registry = registry
        self._providers = dict(providers)

    def knows(self, graph_id: str) -> bool:
        provider = graph_id.partition(":")[0]
        return provider in self._providers and (provider in _STORED or graph_id in self._registry)

    def run_graph(self, call: GraphCall) -> Telling:
        if not self.knows(call.graph_id):
            raise UnknownGraph(call.graph_id)
        return Telling(self._providers[call.graph_id.partition(":")[0]].run(call, self._registry))
