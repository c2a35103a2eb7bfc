"""One attempt at an execution: runs the graph under a lease, writes down what it tells, and says how it ended."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from duly.application.money import Money
from duly.application.scribe import Scribe
from duly.domain.billing import HoldEnded
from duly.domain.errors import DulyError, Unavailable
from duly.domain.executions import (
    GRACE,
    LEASE,
    PATIENCE,
    Ended,
    ErrorCode,
    Execution,
    ExecutionRequest,
    GraphFailed,
    GraphResult,
    LeaseLost,
    OnCrash,
    ended_with,
    failed,
)
from duly.domain.instants import SECOND, Instant, Micros
from duly.ports.executions import Lease
from duly.ports.graphs import GraphCall, GraphCaller, GraphExecutor
from duly.ports.storage import Storage, Transaction

T = TypeVar("T")

_RETRY_EVERY = Micros(SECOND // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPace:
    """`grace` is how long whoever takes over waits beyond the lease; `patience` how long a graph has to stop."""

    lease: Micros = LEASE
    grace: Micros = GRACE
    patience: Micros = PATIENCE

    @property
    def beat(self) -> Micros:
        return Micros(self.lease // 3)

    @property
    def hold_lease(self) -> Micros:
        """Longer than the attempt's: money is not freed before somebody may have taken over."""
        return Micros(self.lease * 4)

    @property
    def margin(self) -> Micros:
        """So long before its lease runs out an attempt stops of its own accord."""
        return Micros(self.lease // 6)

    async def insist(self, storage: Storage, write: Callable[[], Awaitable[T]]) -> T:
        """Tries again while the store is away, for as long as a lease and its grace: then somebody else may have it."""
        until = storage.clock.lease_now() + self.lease + self.grace
        while True:
            try:
                return await write()
            except Unavailable:
                if storage.clock.lease_now() >= until:
                    raise
                await storage.clock.sleep(_RETRY_EVERY)


class Attempt:
    def __init__(
        self,
        *,
        storage: Storage,
        graphs: GraphExecutor,
        money: Money,
        pace: AttemptPace,
        execution: Execution,
        request: ExecutionRequest,
        caller: GraphCaller,
        ingress_request_id: str,
        traceparent: str | None = None,
    ) -> None:
        self._storage = storage
        self._graphs = graphs
        self._money = money
        self._pace = pace
        self._claim = execution.claim
        self._must_give_way = asyncio.Event()
        self._safe_until = Micros(execution.expires_at - pace.margin)
        self._timeout = Micros(request.timeout_ms * 1_000)
        self._scribe = Scribe(
            storage=storage, money=money, claim=self._claim, insist=pace.insist, may_spend=request.max_cost != 0
        )
        self._call = GraphCall(
            run_id=execution.run_id,
            ingress_request_id=ingress_request_id,
            graph_id=execution.graph_id,
            input=request.input,
            messages=request.messages,
            model=request.model,
            caller=caller,
            attempt=execution.attempt,
            token=execution.token,
            deadline=Instant(storage.clock.now() + self._timeout),
            check_lease=self.check_lease,
            continues=execution.attempt > 1 and (execution.reply is not None or request.on_crash is not OnCrash.RERUN),
            reply=execution.replied,
            traceparent=traceparent,
            max_cost=request.max_cost,
            check_model=self.check_model,
        )

    def check_lease(self) -> None:
        """Without asking the store: before each model call. One that spent what it may not begins no other."""
        self._scribe.require_in_bounds()
        if self._storage.clock.lease_now() >= self._safe_until:
            raise LeaseLost(self._claim.run_id, self._claim.attempt)

    def check_model(self, model: str | None) -> None:
        self.check_lease()
        self._scribe.require_payable(model)

    def give_way(self) -> None:
        """Somebody has said how it ended: the graph is stopped, and `ended` raises LeaseLost."""
        self._safe_until = Micros(0)
        self._must_give_way.set()

    async def ended(self) -> Ended:
        """How the graph ended, once all it told is kept; raises LeaseLost if this attempt must not say."""
        await self._scribe.begin()
        if self._must_give_way.is_set():
            raise LeaseLost(self._claim.run_id, self._claim.attempt)
        graph = asyncio.create_task(self._drained())
        keeper = asyncio.create_task(self._keep_lease())
        writing = asyncio.create_task(self._scribe.write_along())
        deadline = asyncio.create_task(self._storage.clock.sleep(self._timeout))
        giving_way = asyncio.create_task(self._must_give_way.wait())
        others = (keeper, writing, deadline, giving_way)
        try:
            await asyncio.wait({graph, *others}, return_when=asyncio.FIRST_COMPLETED)
            if self._must_give_way.is_set():
                raise LeaseLost(self._claim.run_id, self._claim.attempt)
            ended = await self._judged(graph, keeper, writing)
            await self._scribe.close()
            return ended
        finally:
            # Whatever is left behind must spend nothing more.
            self._safe_until = Micros(0)
            await self._stop(graph)
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _judged(
        self, graph: asyncio.Task[GraphResult], keeper: asyncio.Task[None], writing: asyncio.Task[None]
    ) -> Ended:
        for other in (keeper, writing):
            if other.done():
                other.result()  # these go on for ever, unless they fail
        if not graph.done():
            self._safe_until = Micros(0)
            said = "" if await self._stop(graph) else ", and does not stop: it is left behind"
            return failed(ErrorCode.TIMEOUT, f"the graph took longer than {self._timeout // 1_000} ms{said}")
        try:
            ended = ended_with(graph.result())
            self._scribe.require_in_bounds()
            return ended  # noqa: TRY300 - what is raised is judged alike
        except LeaseLost:
            raise
        except GraphFailed as failure:
            return failed(failure.error_code, str(failure))
        except DulyError as error:
            return failed(error.code, str(error))
        except asyncio.CancelledError:
            return failed(ErrorCode.GRAPH, "the graph cancelled itself")
        except BaseException as error:  # noqa: BLE001 - whatever a graph raises is its failure, not the service's
            return failed(ErrorCode.GRAPH, f"{type(error).__name__}: {_said(error)}")

    async def _drained(self) -> GraphResult:
        running = self._graphs.run_graph(self._call)
        try:
            async for event in running:
                await self._scribe.note(event)
            return await running.final()
        except (KeyboardInterrupt, SystemExit) as error:
            # A task that raises one of these ends the event loop, and with it the whole service.
            raise GraphFailed(f"{type(error).__name__}: {_said(error)}") from error
        finally:
            with suppress(RuntimeError):  # one that is stuck in the middle cannot be closed
                await running.aclose()

    async def _stop(self, graph: asyncio.Task[GraphResult]) -> bool:
        """Asks it to stop; answers whether it did before patience ran out."""
        if graph.done():
            return True
        graph.cancel()
        enough = asyncio.create_task(self._storage.clock.sleep(self._pace.patience))
        await asyncio.wait({graph, enough}, return_when=asyncio.FIRST_COMPLETED)
        enough.cancel()
        graph.add_done_callback(_forget)
        return graph.done()

    async def _keep_lease(self) -> None:
        """Ends only by raising LeaseLost: it was taken over, or may be before the store can be asked again."""
        clock = self._storage.clock
        while True:
            await clock.sleep(Micros(max(min(self._pace.beat, self._safe_until - clock.lease_now()), 0)))
            if clock.lease_now() >= self._safe_until:
                raise LeaseLost(self._claim.run_id, self._claim.attempt)
            with suppress(Unavailable):
                await self._renewed()

    async def _renewed(self) -> None:
        """A store that hangs does not keep it from seeing that its time is up."""
        clock = self._storage.clock
        lease = Lease(clock.era, Micros(clock.lease_now() + self._pace.lease))
        renewing = asyncio.create_task(self._stands_until(lease))
        in_time = asyncio.create_task(clock.sleep(Micros(max(self._safe_until - clock.lease_now(), 0))))
        await asyncio.wait({renewing, in_time}, return_when=asyncio.FIRST_COMPLETED)
        in_time.cancel()
        if not renewing.done():
            renewing.cancel()
            return
        if not renewing.result():
            raise LeaseLost(self._claim.run_id, self._claim.attempt)
        if self._safe_until > 0:  # not given up meanwhile
            self._safe_until = Micros(lease.expires_at - self._pace.margin)

    async def _stands_until(self, lease: Lease) -> bool:
        async def work(tx: Transaction) -> bool:
            return await tx.executions.renew(self._claim, lease)

        try:
            await self._money.renew(self._claim.run_id, self._claim.attempt, lease=self._pace.hold_lease)
        except HoldEnded:
            return False
        return await self._storage.transact(work, single=True)


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it failed even at saying why
        return "(it cannot be shown)"


def _forget(task: asyncio.Task[GraphResult]) -> None:
    """Nobody waits any more; asked for, so that asyncio does not complain."""
    if not task.cancelled():
        task.exception()
