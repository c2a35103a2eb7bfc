"""Graphs that tests execute, and a clock that passes only when a test says so."""

import asyncio
from typing import Any

from duly.application.attempts import AttemptPace
from duly.application.executions import Executions
from duly.bootstrap import Queue, Registry
from duly.domain.amounts import UNIT
from duly.domain.executions import Execution, ExecutionRequest
from duly.domain.instants import Micros
from duly.domain.reviews import Decision, Review, Verdict
from duly.ports.graphs import GraphCaller
from tests.contracts.clocks import SettableClock

GRAPH = "python:g"


class PatientClock(SettableClock):
    """Whoever sleeps does so until a test lets the time pass."""

    def __init__(self) -> None:
        super().__init__()
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    async def sleep(self, duration: Micros) -> None:
        if duration <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._lease + duration, woken))
        await woken

    def advance(self, seconds: float = 0, *, micros: int = 0) -> None:
        super().advance(seconds, micros=micros)
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._lease]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._lease]
        for _, woken in due:
            if not woken.done():
                woken.set_result(None)

    async def pass_slowly(self, seconds: float, *, step: float = 1.0) -> None:
        """So that whoever is woken in between has acted before more of it passes."""
        for _ in range(int(seconds / step)):
            self.advance(step)
            for _ in range(50):
                await asyncio.sleep(0)
            await asyncio.sleep(0.005)


class House:
    """An account with money, a grant on it, and the execution service for one graph."""

    def __init__(self, queue: Queue, grant_id: str, account_id: str, executions: Executions) -> None:
        self.queue = queue
        self.grant_id = grant_id
        self.account_id = account_id
        self.executions = executions

    def asks(self, key: str = "k", **given: Any) -> ExecutionRequest:
        defaults: dict[str, Any] = {"graph_id": GRAPH, "grant_id": self.grant_id, "input": {}}
        return ExecutionRequest(key=key, **{**defaults, **given})

    async def begins(self, request: ExecutionRequest) -> Execution:
        """An attempt of a process that then does nothing more, as if it had died."""
        grant = await self.queue.grants.get(self.grant_id, owner=None)
        execution, begun = await self.executions._begin(request, grant, None)
        assert isinstance(begun, GraphCaller)
        return execution

    def beside(self, queue: Queue, graph: Any) -> Executions:
        """The service of another process."""
        return service(queue, graph)


def service(queue: Queue, graph: Any, *, graph_id: str = GRAPH, pace: AttemptPace | None = None) -> Executions:
    registry = Registry()
    registry.add(graph_id, graph)
    return queue.executions(registry, pace=pace)


async def decide(queue: Queue, run_id: str, verdict: str, value: Any = None, *, note: str = "") -> Review:
    """As ann, the one review of a run that is open."""
    (review,) = [each for each in await queue.reviews.of_run(run_id, owner="ann") if each.is_open]
    decision = Decision(verdict=Verdict(verdict), value=value, note=note, by="ann")
    return await queue.reviews.decide(review.id, decision, owner="ann")


async def house(
    queue: Queue, graph: Any, *, credit: int = 10 * UNIT, scope: str = "*", pace: AttemptPace | None = None
) -> House:
    account = await queue.accounts.create(owner="ann", name="main")
    if credit:
        await queue.accounts.credit(account.id, amount=credit, key="first")
    grant = await queue.grants.create(owner="ann", account_id=account.id, scopes=[f"graph:execute:{scope}"])
    return House(queue, grant.id, account.id, service(queue, graph, pace=pace))
