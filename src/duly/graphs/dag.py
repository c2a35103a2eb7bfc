"""Workflows, run node by node: ready ones side by side, each result kept before anything is built on it."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from duly.application.dag_runs import Asking, Begun, DagRuns
from duly.domain.errors import InvalidInput
from duly.domain.executions import GraphFailed, GraphResult
from duly.domain.payloads import json_of, value_of
from duly.domain.workflows import NodeRun, NodeState
from duly.graphs.dag_elsewhere import run_elsewhere
from duly.graphs.dag_nodes import Nodes
from duly.graphs.insisting import insisting
from duly.graphs.registry import Registry
from duly.graphs.telling import Tell, Told, told_by
from duly.ports.clock import Clock
from duly.ports.dice import Dice
from duly.ports.graphs import GraphCall


@dataclass(frozen=True, slots=True, kw_only=True)
class DagGraphs:
    """`dag:name@version`, or the newest version at the time the run starts. `transport` is for HTTP actions."""

    runs: DagRuns
    clock: Clock
    dice: Dice
    transport: Any = None

    async def run(self, call: GraphCall, registry: Registry) -> AsyncGenerator[Told, None]:
        async for told in told_by(lambda tell: self._ended(call, registry, tell)):
            yield told

    async def _ended(self, call: GraphCall, registry: Registry, tell: Tell) -> GraphResult:
        asking = Asking(
            run_id=call.run_id,
            attempt=call.attempt,
            token=call.token,
            graph_id=call.graph_id,
            user=call.caller.user,
            keeps=call.continues,
        )
        begun = await insisting(call, self.clock, lambda: self.runs.begin(asking))
        if begun.plan.executor is not None:
            return await run_elsewhere(
                begun, begun.plan.executor, call, asking, self.runs, clock=self.clock, transport=self.transport
            )
        nodes = Nodes(
            begun=begun,
            call=call,
            asking=asking,
            runs=self.runs,
            registry=registry,
            tell=tell,
            clock=self.clock,
            dice=self.dice,
            transport=self.transport,
        )
        return _result(begun, await nodes.ended())


def _result(begun: Begun, became: dict[str, NodeRun]) -> GraphResult:
    """What the last nodes answered: those that nobody needs."""
    for node in begun.plan.nodes:
        row = became[node.id]
        if row.state is NodeState.FAILED:
            raise GraphFailed(f"node {node.id!r} failed: {row.error}", error_code=row.error_code or "action_failed")
    needed = {each for node in begun.plan.nodes for each in node.needs}
    last = {name: value_of(row.result) for name, row in became.items() if name not in needed and row.result}
    try:
        json_of(last, field="outputs")
    except InvalidInput:  # each is kept by itself, and may be asked for
        return GraphResult(output={"outputs": None, "left_out": sorted(last)})
    return GraphResult(output={"outputs": last})
