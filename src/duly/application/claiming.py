"""Claims an execution for one attempt: new, taken over from whoever died, or left to whoever has it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from duly.application.asking import ask_in
from duly.application.attempts import AttemptPace
from duly.application.call_backs import end_overdue, waits_for_call_back
from duly.application.cancelling import settle_in
from duly.domain.billing import HoldState
from duly.domain.errors import Unavailable
from duly.domain.executions import (
    Claim,
    Ended,
    Execution,
    ExecutionRequest,
    ExecutionStatus,
    OnCrash,
    WaitsFor,
    request_of,
)
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.payloads import json_of
from duly.domain.requests import KeyReused, StillRunning
from duly.domain.reviews import ReviewKind, questions_of
from duly.domain.traces import Trace
from duly.ports.dice import Dice
from duly.ports.executions import Lease
from duly.ports.storage import Storage, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Claiming:
    storage: Storage
    dice: Dice
    pace: AttemptPace

    def work_for(
        self, request: ExecutionRequest, trace: Trace | None
    ) -> Callable[[Transaction], Awaitable[tuple[Execution, bool]]]:
        """Work that answers the execution, and whether it is ours to run."""
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

        return work

    async def _judged(
        self, tx: Transaction, found: Execution, drawn: Execution, review_id: str, *, lease_now: Micros, now: Instant
    ) -> tuple[Execution, bool]:
        if found.is_tombstone:
            if found.is_of(drawn.graph_id, drawn.grant_id):
                return found, False
            await tx.executions.replace_tombstone(drawn)
            return drawn, True
        if found.request_hash != drawn.request_hash:
            raise KeyReused
        # The same token is our own: an earlier run of this work committed, and its answer was lost.
        if found.token == drawn.token:
            return found, found.status is ExecutionStatus.RUNNING
        if waits_for_call_back(found):
            return await end_overdue(tx, found, now=now), False
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
        await ask_in(tx, waiting, kind, [self.dice.new_id("review") for _ in questions_of(waiting.result)], now)

    def _lease(self) -> Lease:
        clock = self.storage.clock
        return Lease(clock.era, Micros(clock.lease_now() + self.pace.lease))


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
    await ask_in(tx, waiting, ReviewKind.CRASH, [review_id], now)
    return waiting


async def _settle_lost(tx: Transaction, found: Execution, now: Instant) -> None:
    """Whatever its last attempt held is settled by what it has spent so far; receipts that still come are charged."""
    await settle_in(tx, found.claim, HoldState.LAPSED, now)


def _seconds(left: Micros) -> int:
    return -(-left // SECOND)
