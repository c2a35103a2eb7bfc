"""The nodes of one run: which may begin, how often each is tried, and what is left of those that no longer can."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from duly.application.dag_runs import Asking, Begun, DagRuns
from duly.domain.dags import HttpCall, Node, resolved
from duly.domain.errors import DulyError, InvalidInput
from duly.domain.executions import EventKind, GraphFailed, LeaseLost, failed
from duly.domain.instants import Instant, Micros
from duly.domain.payloads import Payload, json_of, value_of
from duly.domain.workflows import NodeRun, NodeState
from duly.graphs.actions import ActionFailed, called, requested, usage_told
from duly.graphs.insisting import insisting
from duly.graphs.plain import plain
from duly.graphs.registry import Registry
from duly.graphs.telling import Tell
from duly.ports.clock import Clock
from duly.ports.dice import Dice
from duly.ports.graphs import GraphCall, GraphEvent

LOST = "node_lost"
TIMED_OUT = "node_timeout"


@dataclass(slots=True, kw_only=True)
class Nodes:
    begun: Begun
    call: GraphCall
    asking: Asking
    runs: DagRuns
    registry: Registry
    tell: Tell
    clock: Clock
    dice: Dice
    transport: Any = None
    _became: dict[str, NodeRun] = field(default_factory=dict)
    _failing: asyncio.Event = field(default_factory=asyncio.Event)

    async def ended(self) -> dict[str, NodeRun]:
        """What became of each. After a failure nothing more begins, nor begins again; what runs is waited for."""
        kept = self.begun.nodes.values()
        self._became = {row.node: row for row in kept if row.state in (NodeState.SUCCESS, NodeState.FAILED)}
        running: dict[asyncio.Task[NodeRun], str] = {}
        try:
            while True:
                for node in self._ready(set(running.values())):
                    running[asyncio.create_task(self._tried(node))] = node.id
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._became[running.pop(task)] = task.result()
        finally:
            await _stopped(set(running))
        await self._skip_the_rest()
        return self._became

    def _ready(self, running: set[str]) -> list[Node]:
        if any(row.state is NodeState.FAILED for row in self._became.values()):
            return []
        free = self.begun.plan.concurrency - len(running)
        waiting = (node for node in self.begun.plan.nodes if node.id not in self._became and node.id not in running)
        return [node for node in waiting if all(each in self._became for each in node.needs)][:free]

    async def _skip_the_rest(self) -> None:
        broken = {name: row for name, row in self._became.items() if row.state is NodeState.FAILED}
        skipped = []
        for node in self.begun.plan.nodes:
            if node.id in self._became:
                continue
            bad = next((each for each in node.needs if self._became[each].state is not NodeState.SUCCESS), None)
            why = f"the run failed at {next(iter(broken))!r}" if bad is None else _because(self._became[bad])
            row = replace(self._row(node), state=NodeState.SKIPPED, error=why, ended_at=self.clock.now())
            self._became[node.id] = row
            skipped.append(row)
            self._say(node, "skipped", reason=why)
        if skipped:
            await self._save(skipped)

    # One node

    async def _tried(self, node: Node) -> NodeRun:
        """Begun, and begun again while it fails and may; a try that a dead process had begun is lost, and counts."""
        row = self.begun.nodes.get(node.id, self._row(node))
        row = replace(row, error_code=LOST, error=f"the process that ran try {row.tries} of it died")
        again = True
        while again and row.tries < node.retry.max_attempts:
            if row.tries and await self._fails_within(node.retry.wait_after(row.tries, fraction=self.dice.fraction())):
                break
            row = await self._begun(node, row)
            try:
                result = await self._answer(node, row)
            except LeaseLost:
                raise
            except Exception as error:  # noqa: BLE001 - whatever an action raises is its failure
                row, again = _failed(row, error), _may_repeat(error)
                self._say(node, "failed", attempt=row.tries, error=row.error)
                continue
            return await self._succeeded(node, row, result)
        row = replace(row, state=NodeState.FAILED, ended_at=self.clock.now())
        await self._save([row])
        self._failing.set()
        return row

    async def _fails_within(self, wait: Micros) -> bool:
        """Whether the run is lost by the end of a wait, and trying again is of no use."""
        pause = asyncio.ensure_future(self.clock.sleep(wait))
        lost = asyncio.ensure_future(self._failing.wait())
        try:
            await asyncio.wait({pause, lost}, return_when=asyncio.FIRST_COMPLETED)
            return self._failing.is_set()
        finally:
            pause.cancel()
            lost.cancel()

    async def _begun(self, node: Node, row: NodeRun) -> NodeRun:
        self.call.check_lease()
        now = self.clock.now()
        row = replace(row, state=NodeState.RUNNING, tries=row.tries + 1, started_at=now, ended_at=None)
        await self._save([replace(row, error=None, error_code=None)])
        self._say(node, "started", attempt=row.tries)
        return row

    async def _succeeded(self, node: Node, row: NodeRun, result: Payload) -> NodeRun:
        now = self.clock.now()
        row = replace(row, state=NodeState.SUCCESS, result=result, error=None, error_code=None, ended_at=now)
        await self._save([row])
        self.tell(GraphEvent(EventKind.UPDATE, {node.id: value_of(result)}))
        self._say(node, "ended", attempt=row.tries)
        return row

    async def _answer(self, node: Node, row: NodeRun) -> Payload:
        """Within its time: what does not stop then is left behind."""
        task = asyncio.ensure_future(self._acted(node, row))
        enough = asyncio.ensure_future(self.clock.sleep(Micros(node.timeout_ms * 1_000)))
        try:
            await asyncio.wait({task, enough}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ActionFailed(f"it took longer than {node.timeout_ms} ms", error_code=TIMED_OUT)
            return json_of(plain(task.result()), field=f"the result of {node.id}")
        finally:
            for each in (task, enough):
                each.cancel()
            task.add_done_callback(_forget)

    async def _acted(self, node: Node, row: NodeRun) -> Any:
        results = {name: value_of(done.result) for name, done in self._became.items() if done.result is not None}
        inputs = resolved(dict(node.inputs), results, self.call.input)
        if isinstance(node.action, HttpCall):
            until = Instant(min(self.call.deadline, self.clock.now() + node.timeout_ms * 1_000))
            key = f"{self.call.run_id}/{node.id}"
            answer = await requested(node.action, inputs, key=key, until=until, clock=self.clock, client=self.transport)
            for event in usage_told(answer["body"]):
                self._teller(node, row.tries)(event)
            return answer
        return await called(node, inputs, self.call, self.registry, self._teller(node, row.tries))

    async def _save(self, rows: list[NodeRun]) -> None:
        await insisting(self.call, self.clock, lambda: self.runs.save(self.asking, rows))

    def _teller(self, node: Node, attempt: int) -> Tell:
        """What it spends is a unit of its own, whatever it calls it: other nodes may call theirs alike."""

        def tell(event: GraphEvent) -> None:
            spent = event.model_call
            if spent is not None:
                spent = replace(spent, unit=f"{node.id}:{attempt}:{spent.unit}")
            self.tell(GraphEvent(event.kind, {**event.data, "node": node.id}, spent))

        return tell

    def _say(self, node: Node, event: str, **more: Any) -> None:
        self.tell(GraphEvent(EventKind.LOG, {"task": node.id, "event": event, **more}))

    def _row(self, node: Node) -> NodeRun:
        return NodeRun(run_id=self.call.run_id, node=node.id, owner=self.begun.run.owner, state=NodeState.RUNNING)


def _because(row: NodeRun) -> str:
    return f"it needs {row.node!r}, which {'failed' if row.state is NodeState.FAILED else 'was skipped'}"


def _failed(row: NodeRun, error: Exception) -> NodeRun:
    code = error.error_code if isinstance(error, GraphFailed) else error.code if isinstance(error, DulyError) else ""
    said = str(error) if isinstance(error, DulyError) else f"{type(error).__name__}: {error}"
    kept = failed(code or "action_failed", said)
    return replace(row, error_code=kept.error_code, error=kept.error_message)


def _may_repeat(error: Exception) -> bool:
    if isinstance(error, ActionFailed):
        return error.again
    if isinstance(error, GraphFailed):
        return error.error_code not in ("unknown_action", "graph_unloadable")
    return not isinstance(error, InvalidInput)


async def _stopped(tasks: set[asyncio.Task[NodeRun]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _forget(task: "asyncio.Future[Any]") -> None:
    """Nobody waits any more; asked for, so that asyncio does not complain."""
    if not task.cancelled():
        task.exception()
