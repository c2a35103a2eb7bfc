"""Executes a graph once for each key: claimed, held for, run, receipted, settled, and answered alike for ever after."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from duly.application.accounts import Accounts, account_in
from duly.application.attempts import Attempt, AttemptPace
from duly.application.cancelling import Cancelling, tombstone_of
from duly.application.claiming import Claiming
from duly.application.estimates import hold_for
from duly.application.finishing import Finishing
from duly.application.grants import Grants
from duly.application.money import Money, hold_in
from duly.application.schedules import Schedules
from duly.application.untraced import Untraced
from duly.domain.billing import Hold, MaySpendNothing
from duly.domain.errors import DulyError, Refused
from duly.domain.executions import (
    DEFAULT_MODEL,
    Execution,
    ExecutionEvent,
    ExecutionRequest,
    ExecutionStatus,
    LeaseLost,
    Silence,
    UnknownExecution,
    UnknownGraph,
    reason_of,
)
from duly.domain.grants import Grant, UnknownGrant
from duly.domain.requests import KeyReused, StillRunning
from duly.domain.reviews import ReviewKind
from duly.domain.schedules import UnknownSchedule
from duly.domain.texts import text_of, whole_number_of
from duly.domain.traces import Trace
from duly.ports.dice import Dice
from duly.ports.graphs import GraphCaller, GraphExecutor
from duly.ports.storage import Storage, Transaction
from duly.ports.tracing import Span, Tracing

MOST_EVENTS_READ = 1_000
_SOON_S = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions:
    """The execution service. It writes executions, events, holds and receipts, and nothing of the ledger's."""

    storage: Storage
    dice: Dice
    graphs: GraphExecutor
    grants: Grants
    accounts: Accounts
    money: Money
    schedules: Schedules
    pace: AttemptPace = field(default_factory=AttemptPace)
    tracing: Tracing = field(default_factory=Untraced)
    _running: set[asyncio.Task[Execution]] = field(default_factory=set)
    _attempts: dict[str, Attempt] = field(default_factory=dict)

    async def execute(
        self, request: ExecutionRequest, *, ingress_request_id: str | None = None, trace: Trace | None = None
    ) -> Execution:
        """What became of it: the stored outcome if there is one, else of running it now, or that it waits.

        Raises KeyReused if the key stands for something else, StillRunning while somebody else runs it, and what is
        wrong with its grant. Whoever is cancelled stops waiting; the graph goes on, and its outcome is kept.
        `trace` is where the caller stands: the first one's trace is the execution's.
        """
        try:
            grant = await self._granted(request)
        except DulyError:
            # What has happened stays true when a grant is revoked.
            if (known := await self._outcome_of(request)) is not None:
                return known
            raise
        execution, begun = await self._begin(request, grant, trace)
        if begun is None:
            return execution
        return await self._aside(self._started(execution, begun, request, ingress_request_id, trace))

    async def cancel(
        self, key: str, reason: str, *, graph_id: str | None = None, grant_id: str | None = None
    ) -> Execution:
        """Ends it, whether it runs or waits; what is over stays as it is.

        Its graph is stopped at once if it runs here, elsewhere when it next renews its lease. What it spent is charged.
        Whoever names graph and grant may be faster than the call itself, which then runs nothing.
        """
        why, clock = reason_of(reason), self.storage.clock
        now, tombstone = clock.now(), None
        if graph_id is not None and grant_id is not None:
            ids = {"run_id": self.dice.new_id("exe"), "trace_id": self.dice.new_id("trace").removeprefix("trace_")}
            tombstone = tombstone_of(key, graph_id, grant_id, reason=why, **ids, era=clock.era, now=now)
        cancelling = Cancelling(key=key, reason=why, graph_id=graph_id, grant_id=grant_id, tombstone=tombstone, now=now)
        cancelled = await self.storage.transact(cancelling.work)
        if (attempt := self._attempts.get(cancelled.run_id)) is not None:
            attempt.give_way()
        return cancelled

    async def get(self, run_id: str, *, owner: str | None) -> Execution:
        found = await self.storage.read(lambda tx: tx.executions.by_run(text_of(run_id, field="run_id")))
        if found is None:
            raise UnknownExecution(run_id)
        try:
            await self.grants.get(found.grant_id, owner=owner)
        except UnknownGrant:
            raise UnknownExecution(run_id) from None
        return found

    async def events(
        self, run_id: str, *, owner: str | None, after: int = 0, most: int = MOST_EVENTS_READ
    ) -> Sequence[ExecutionEvent]:
        """In order, from behind `after` on."""
        whole_number_of(most, field="most", least=1, most=MOST_EVENTS_READ)
        await self.get(run_id, owner=owner)
        return await self.storage.read(lambda tx: tx.executions.events(run_id, after=after, most=most))

    async def close(self) -> None:
        """Stops what runs here; it is not over, and whoever calls next takes over when its lease has run out."""
        running = set(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    # Claiming

    async def _granted(self, request: ExecutionRequest) -> Grant:
        if not self.graphs.knows(request.graph_id):
            raise UnknownGraph(request.graph_id)
        return await self.grants.validate(request.grant_id, graph_id=request.graph_id)

    async def _outcome_of(self, request: ExecutionRequest) -> Execution | None:
        found = await self.storage.read(lambda tx: tx.executions.by_key(request.key))
        if found is None:
            return None
        if found.is_tombstone:
            return found if found.is_of(request.graph_id, request.grant_id) else None
        if found.request_hash != request.hash:
            raise KeyReused
        return found if found.status is ExecutionStatus.DONE else None

    async def _begin(
        self, request: ExecutionRequest, grant: Grant, trace: Trace | None
    ) -> tuple[Execution, "_Begun | None"]:
        """Claims it and holds what it may cost, in one transaction: nobody finds one without the other.

        What may not be held for is claimed all the same, to end as refused. None if it is not ours.
        """
        claim = Claiming(storage=self.storage, dice=self.dice, pace=self.pace).work_for(request, trace)

        async def work(tx: Transaction) -> tuple[Execution, GraphCaller | None]:
            execution, is_ours = await claim(tx)
            if not is_ours:
                return execution, None
            hold = await self._held(tx, execution, request, grant)
            key = hold.virtual_key_id
            return execution, GraphCaller(user=grant.user_id, account=grant.account_id, virtual_key_id=key)

        try:
            return await self.storage.transact(work)
        except (Refused, UnknownSchedule) as refusal:
            execution, is_ours = await self.storage.transact(claim)
            return execution, refusal if is_ours else None

    # Running

    async def _aside(self, run: Coroutine[Any, Any, Execution]) -> Execution:
        task = asyncio.create_task(run)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Execution]) -> None:
        """Whoever waited for it may be gone; asked for its error, so that asyncio does not complain."""
        self._running.discard(task)
        if not task.cancelled():
            task.exception()

    async def _held(self, tx: Transaction, execution: Execution, request: ExecutionRequest, grant: Grant) -> Hold:
        """Raises why it may not cost anything, if so."""
        model = None if request.model == DEFAULT_MODEL else request.model
        is_paid = model is not None and not self.accounts.prices.is_free(model)
        if model is not None and is_paid:
            if request.max_cost == 0:
                raise MaySpendNothing(model)
            self.accounts.require_price(await account_in(tx, grant.account_id, None), model)
        amount = hold_for(request.max_cost, model, self.accounts.prices)
        wanted = self.money.wanted(
            execution.run_id,
            execution.attempt,
            account_id=grant.account_id,
            amount=amount,
            schedule_id=request.schedule_id,
            lease=self.pace.hold_lease,
        )
        may_exceed = execution.attempt > 1 and await _may_exceed(tx, execution.run_id)
        return await hold_in(tx, wanted, user=grant.user_id, beyond_budgets=may_exceed)

    def _started(
        self,
        execution: Execution,
        begun: "_Begun",
        request: ExecutionRequest,
        ingress_request_id: str | None,
        parent: Trace | None,
    ) -> Coroutine[Any, Any, Execution]:
        """A span of the execution's own trace for each attempt, whoever asks for it.

        Awaits nothing: whoever cancels it finds the attempt as soon as its claim is known.
        """
        span = self.tracing.begin(
            f"execute {execution.graph_id}",
            trace_id=execution.trace_id,
            parent=parent if parent is not None and parent.trace_id == execution.trace_id else None,
            seed=f"{execution.run_id}/{execution.attempt}",
            attributes={
                "duly.run_id": execution.run_id,
                "duly.graph_id": execution.graph_id,
                "duly.attempt": execution.attempt,
            },
        )
        if isinstance(begun, DulyError):
            return _traced(span, self._refuse(execution, begun, request))
        attempt = self._attempts[execution.run_id] = Attempt(
            storage=self.storage,
            graphs=self.graphs,
            money=self.money,
            pace=self.pace,
            execution=execution,
            request=request,
            caller=begun,
            ingress_request_id=ingress_request_id or execution.run_id,
            traceparent=span.trace.header,
        )
        return _traced(span, self._run(execution, attempt))

    async def _run(self, execution: Execution, attempt: Attempt) -> Execution:
        try:
            return await self._finishing().finish(execution.claim, await attempt.ended())
        except LeaseLost:
            return await self._as_it_stands(execution)
        finally:
            if self._attempts.get(execution.run_id) is attempt:
                del self._attempts[execution.run_id]

    async def _refuse(self, execution: Execution, refusal: DulyError, request: ExecutionRequest) -> Execution:
        try:
            return await self._finishing().refuse(execution.claim, refusal, request)
        except LeaseLost:
            return await self._as_it_stands(execution)

    def _finishing(self) -> Finishing:
        return Finishing(storage=self.storage, dice=self.dice, pace=self.pace, schedules=self.schedules)

    async def _as_it_stands(self, execution: Execution) -> Execution:
        """For whoever waited for an attempt that was fenced."""
        found = await self.storage.read(lambda tx: tx.executions.by_key(execution.key))
        if found is None or found.status is ExecutionStatus.RUNNING:
            raise StillRunning(_SOON_S)
        return found


_Begun = GraphCaller | DulyError
"""Ours to run for somebody, or ours to end as refused."""


async def _traced(span: Span, run: Coroutine[Any, Any, Execution]) -> Execution:
    error: str | None = "interrupted"
    try:
        ended = await run
        error = ended.error_code
    finally:
        span.end(error)
    return ended


async def _may_exceed(tx: Transaction, run_id: str) -> bool:
    """Whether somebody has said that it may go beyond budgets that ask."""
    reviews = await tx.reviews.of_run(run_id)
    return any(each.kind is ReviewKind.BUDGET and each.verdict is Silence.APPROVE for each in reviews)
