"""Executes a graph once for each key: claimed, held for, run, receipted, settled, and answered alike for ever after."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

from duly.application.accounts import Accounts
from duly.application.attempts import Attempt, AttemptPace
from duly.application.batch import Drawn
from duly.application.estimates import hold_for
from duly.application.grants import Grants
from duly.application.money import Money, end_in
from duly.application.schedules import Changed, Schedules
from duly.application.untraced import Untraced
from duly.domain.amounts import written_amount
from duly.domain.billing import HoldState, OnExceeded, OverBudget, UnknownHold
from duly.domain.errors import DulyError, Refused, Unavailable
from duly.domain.executions import (
    DEFAULT_MODEL,
    Claim,
    Ended,
    ErrorCode,
    Execution,
    ExecutionEvent,
    ExecutionRequest,
    ExecutionStatus,
    LeaseLost,
    OnCrash,
    Silence,
    UnknownExecution,
    UnknownGraph,
    WaitsFor,
    failed,
    reason_of,
    request_of,
)
from duly.domain.grants import Grant, UnknownGrant
from duly.domain.ids import GrantId, Owner, ScheduleId
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.payloads import json_of
from duly.domain.requests import KeyReused, StillRunning
from duly.domain.reviews import ReviewKind, opened, questions_of, why_unaskable
from duly.domain.schedules import UnknownSchedule
from duly.domain.texts import text_of, whole_number_of
from duly.domain.traces import Trace
from duly.ports.dice import Dice
from duly.ports.executions import Lease
from duly.ports.graphs import GraphCaller, GraphExecutor
from duly.ports.storage import Storage, Transaction
from duly.ports.tracing import Tracing

"""What is held for a run that names a paid model, and not what it may cost."""

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
        known = await self._outcome_of(request)
        if known is not None:
            return known
        if not self.graphs.knows(request.graph_id):
            raise UnknownGraph(request.graph_id)
        grant = await self.grants.validate(request.grant_id, graph_id=request.graph_id)
        key = await self.accounts.default_key(grant.account_id, owner=None)
        execution, is_ours = await self._claim(request, trace)
        if not is_ours:
            return execution
        caller = GraphCaller(user=grant.user_id, account=grant.account_id, virtual_key_id=key.id)
        return await self._aside(self._traced(execution, request, grant, caller, ingress_request_id, parent=trace))

    async def cancel(self, key: str, reason: str, *, graph_id: str | None = None) -> Execution:
        """Ends it, whether it runs or waits; what is over stays as it is.

        Its graph is stopped at once if it runs here, elsewhere when it next renews its lease. What it spent is charged.
        """
        ended, now = failed(ErrorCode.CANCELLED, reason_of(reason)), self.storage.clock.now()

        async def work(tx: Transaction) -> Execution:
            locked = await tx.executions.lock_key(key)
            if locked is None or graph_id not in (None, locked.graph_id):
                raise UnknownExecution(key)
            if locked.status is ExecutionStatus.DONE:
                return locked
            await tx.executions.end(locked.claim, ended, now=now)
            await _settle(tx, locked.claim, HoldState.SETTLED, now)
            await tx.reviews.withdraw(locked.run_id, reason=reason, now=now)
            return await tx.executions.by_key(key) or locked

        cancelled = await self.storage.transact(work)
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

    async def cost(self, execution: Execution) -> int:
        """What all its attempts have spent so far."""

        async def work(tx: Transaction) -> int:
            held = [await tx.holds.get(execution.run_id, number) for number in range(1, execution.attempt + 1)]
            return sum(hold.spent for hold in held if hold is not None)

        return await self.storage.read(work)

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

    async def _outcome_of(self, request: ExecutionRequest) -> Execution | None:
        """Known before the grant is looked at: what has happened stays true when a grant is revoked."""
        found = await self.storage.read(lambda tx: tx.executions.by_key(request.key))
        if found is None:
            return None
        if found.request_hash != request.hash:
            raise KeyReused
        return found if found.status is ExecutionStatus.DONE else None

    async def _claim(self, request: ExecutionRequest, trace: Trace | None = None) -> tuple[Execution, bool]:
        """The execution, and whether it is ours to run."""
        clock = self.storage.clock
        now, lease_now, lease = clock.now(), clock.lease_now(), self._lease()
        drawn = Execution(
            key=request.key,
            request_hash=request.hash,
            request=request.written,
            graph_id=request.graph_id,
            grant_id=request.grant_id,
            run_id=self.dice.new_id("exe"),
            trace_id=self.dice.new_id("trace").removeprefix("trace_") if trace is None else trace.trace_id,
            status=ExecutionStatus.RUNNING,
            token=int(self.dice.new_id("t")[-15:], 16),
            era=lease.era,
            expires_at=lease.expires_at,
            created_at=now,
        )

        review_id = self.dice.new_id("review")

        async def work(tx: Transaction) -> tuple[Execution, bool]:
            if await tx.executions.add(drawn):
                return drawn, True
            found = await tx.executions.lock_key(request.key)
            if found is None:
                raise Unavailable("the execution was claimed and forgotten at the same time; try again")
            return await self._judged(tx, found, drawn, review_id, lease_now=lease_now, now=now)

        return await self.storage.transact(work)

    async def _judged(
        self, tx: Transaction, found: Execution, drawn: Execution, review_id: str, *, lease_now: Micros, now: Instant
    ) -> tuple[Execution, bool]:
        if found.request_hash != drawn.request_hash:
            raise KeyReused
        # The same token is our own: an earlier run of this work committed, and its answer was lost.
        if found.token == drawn.token:
            return found, found.status is ExecutionStatus.RUNNING
        if found.status is ExecutionStatus.WAITING and not found.is_replied:
            await self._ask_what_nobody_was_asked(tx, found, now)
            return found, False
        if found.status is ExecutionStatus.DONE:
            return found, False
        if found.status is ExecutionStatus.RUNNING:
            left = found.frees_in(era=drawn.era, lease_now=lease_now, grace=self.pace.grace)
            if left > 0:
                raise StillRunning(_seconds(left))
            await _settle_lost(tx, found, now)
            if request_of(found.key, found.request).on_crash is OnCrash.ASK:
                return await _asked_about(tx, found, review_id, now), False
        return await _taken_over(tx, found, drawn), True

    async def _ask_what_nobody_was_asked(self, tx: Transaction, waiting: Execution, now: Instant) -> None:
        """An earlier version let executions wait without reviews: nobody could decide them, nothing would wake them.

        Work that is run again finds what it has asked, so the ids may be drawn here.
        """
        if await tx.reviews.of_run(waiting.run_id):
            return
        kind = ReviewKind.CRASH if waiting.waits_for is WaitsFor.CRASH else ReviewKind.GRAPH
        await _ask(tx, waiting, kind, [self.dice.new_id("review") for _ in questions_of(waiting.result)], now)

    def _lease(self) -> Lease:
        clock = self.storage.clock
        return Lease(clock.era, Micros(clock.lease_now() + self.pace.lease))

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

    async def _traced(
        self,
        execution: Execution,
        request: ExecutionRequest,
        grant: Grant,
        caller: GraphCaller,
        ingress_request_id: str | None,
        *,
        parent: Trace | None,
    ) -> Execution:
        """A span of the execution's own trace for each attempt, whoever asks for it."""
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
        error: str | None = "interrupted"
        try:
            ended = await self._run(
                execution, request, grant, caller, ingress_request_id, traceparent=span.trace.header
            )
            error = ended.error_code
        finally:
            span.end(error)
        return ended

    async def _run(
        self,
        execution: Execution,
        request: ExecutionRequest,
        grant: Grant,
        caller: GraphCaller,
        ingress_request_id: str | None,
        *,
        traceparent: str,
    ) -> Execution:
        refusal = await self._held(execution, request, grant)
        if refusal is not None:
            return await self._refused(execution.claim, refusal, request)
        attempt = Attempt(
            storage=self.storage,
            graphs=self.graphs,
            money=self.money,
            pace=self.pace,
            execution=execution,
            request=request,
            caller=caller,
            ingress_request_id=ingress_request_id or execution.run_id,
            traceparent=traceparent,
        )
        self._attempts[execution.run_id] = attempt
        try:
            await self._require_standing(execution.claim)
            return await self._finish(execution.claim, await attempt.ended())
        except LeaseLost:
            return await self._as_it_stands(execution)
        finally:
            if self._attempts.get(execution.run_id) is attempt:
                del self._attempts[execution.run_id]

    async def _require_standing(self, claim: Claim) -> None:
        """Whoever ended it, or took it over, before this hold was there has not seen it: it is given back."""
        found = await self.storage.read(lambda tx: tx.executions.by_key(claim.key))
        if found is None or found.token != claim.token or found.status is not ExecutionStatus.RUNNING:
            await self.pace.insist(self.storage, lambda: self.money.release(claim.run_id, claim.attempt))
            raise LeaseLost(claim.run_id, claim.attempt)

    async def _held(self, execution: Execution, request: ExecutionRequest, grant: Grant) -> DulyError | None:
        """Why it may not cost anything, if so."""
        model = None if request.model == DEFAULT_MODEL else request.model
        try:
            await self.accounts.require_payable(grant.account_id, model, owner=None)
            amount = hold_for(request.max_cost, model, self.accounts.prices)
            await self.money.hold(
                execution.run_id,
                execution.attempt,
                account_id=grant.account_id,
                amount=amount,
                schedule_id=request.schedule_id,
                user=grant.user_id,
                lease=self.pace.hold_lease,
                beyond_budgets=execution.attempt > 1 and await self._may_exceed(execution.run_id),
            )
        except (Refused, UnknownSchedule) as refusal:
            return refusal
        return None

    async def _may_exceed(self, run_id: str) -> bool:
        """Whether somebody has said that it may go beyond budgets that ask."""
        reviews = await self.storage.read(lambda tx: tx.reviews.of_run(run_id))
        return any(each.kind is ReviewKind.BUDGET and each.verdict is Silence.APPROVE for each in reviews)

    async def _refused(self, claim: Claim, refusal: DulyError, request: ExecutionRequest) -> Execution:
        """Beyond a budget, as that says: skipped by its outcome, its schedule paused, or a person asked."""
        if isinstance(refusal, OverBudget) and refusal.policy is OnExceeded.ASK:
            return await self._finish(claim, _over_budget(refusal), kind=ReviewKind.BUDGET)
        return await self._finish(claim, failed(refusal.code, str(refusal)), pausing=self._pausing(refusal, request))

    async def _finish(
        self,
        claim: Claim,
        ended: Ended,
        *,
        kind: ReviewKind = ReviewKind.GRAPH,
        pausing: "_Pausing | None" = None,
    ) -> Execution:
        """Settles and keeps the outcome, or that it waits, in one transaction; raises LeaseLost if it was fenced."""
        now, earlier_runs = self.storage.clock.now(), count()
        if ended.ok is None and (why := why_unaskable(ended.result)) is not None:
            ended = failed(ErrorCode.RESULT, why)
        ids = [self.dice.new_id("review") for _ in questions_of(ended.result)] if ended.ok is None else []
        paused: list[Changed] = []

        async def work(tx: Transaction) -> Execution:
            is_rerun = next(earlier_runs) > 0
            if ended.ok is None:
                stood = await tx.executions.suspend(claim, ended, WaitsFor.REVIEW)
            else:
                stood = await tx.executions.end(claim, ended, now=now)
            found = await tx.executions.by_key(claim.key)
            if found is None or not (stood or (is_rerun and _is_ours(found, claim))):
                raise LeaseLost(claim.run_id, claim.attempt)
            await _settle(tx, claim, HoldState.SETTLED, now)
            if found.status is ExecutionStatus.WAITING and ended.ok is None:
                await _ask(tx, found, kind, ids, now)
            if pausing is not None:
                changed = await self.schedules.pause_in(tx, pausing.schedule_id, pausing.drawn, reason=pausing.reason)
                paused.extend([] if changed is None else [changed])
            return found

        execution = await self.pace.insist(self.storage, lambda: self.storage.transact(work))
        for changed in paused[-1:]:
            self.schedules.told(changed)
        return execution

    def _pausing(self, refusal: DulyError, request: ExecutionRequest) -> "_Pausing | None":
        if not isinstance(refusal, OverBudget) or refusal.policy is not OnExceeded.PAUSE or request.schedule_id is None:
            return None
        return _Pausing(ScheduleId(request.schedule_id), f"{refusal.code}: {refusal}", self.schedules.draw())

    async def _as_it_stands(self, execution: Execution) -> Execution:
        """For whoever waited for an attempt that was fenced."""
        found = await self.storage.read(lambda tx: tx.executions.by_key(execution.key))
        if found is None or found.status is ExecutionStatus.RUNNING:
            raise StillRunning(_SOON_S)
        return found


class _Pausing(NamedTuple):
    schedule_id: ScheduleId
    reason: str
    drawn: Drawn


async def _taken_over(tx: Transaction, found: Execution, drawn: Execution) -> Execution:
    claim = Claim(found.key, found.run_id, found.attempt + 1, drawn.token)
    is_replied = found.reply is not None
    if not is_replied and request_of(found.key, found.request).on_crash is OnCrash.RERUN:
        await tx.checkpoints.forget(found.run_id)
    lease = Lease(drawn.era, drawn.expires_at)
    await tx.executions.begin_attempt(claim, lease, reply=found.reply)
    return replace(
        found,
        status=ExecutionStatus.RUNNING,
        attempt=claim.attempt,
        token=claim.token,
        era=lease.era,
        expires_at=lease.expires_at,
        waits_for=None,
        result=None,
    )


async def _asked_about(tx: Transaction, found: Execution, review_id: str, now: Instant) -> Execution:
    question = Ended(ok=None, result=json_of({"crashed": found.attempt}, field="result"))
    await tx.executions.suspend(found.claim, question, WaitsFor.CRASH)
    waiting = replace(
        found,
        status=ExecutionStatus.WAITING,
        waits_for=WaitsFor.CRASH,
        result=question.result,
        reply=None,
    )
    await _ask(tx, waiting, ReviewKind.CRASH, [review_id], now)
    return waiting


async def _ask(tx: Transaction, waiting: Execution, kind: ReviewKind, ids: Sequence[str], now: Instant) -> None:
    grant = await tx.grants.get(GrantId(waiting.grant_id))
    if grant is not None:
        await tx.reviews.add(opened(waiting, kind, Owner(grant.user_id), ids, now))


def _over_budget(over: OverBudget) -> Ended:
    amounts = {"asked": written_amount(over.asked), "limit": written_amount(over.limit)}
    about = {"over_budget": str(over), "budget_id": over.budget_id, **amounts}
    return Ended(ok=None, result=json_of(about, field="question"))


async def _settle_lost(tx: Transaction, found: Execution, now: Instant) -> None:
    """Whatever its last attempt held is settled by what it has spent so far; receipts that still come are charged."""
    await _settle(tx, found.claim, HoldState.LAPSED, now)


async def _settle(tx: Transaction, claim: Claim, state: HoldState, now: Instant) -> None:
    try:
        await end_in(tx, claim.run_id, claim.attempt, state, now=now)
    except UnknownHold:
        return  # it ended before anything was held


def _is_ours(found: Execution, claim: Claim) -> bool:
    return found.token == claim.token and found.status is not ExecutionStatus.RUNNING


def _seconds(left: Micros) -> int:
    return -(-left // SECOND)
