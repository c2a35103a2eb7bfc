"""Keeps how an attempt ended, with its money, its reviews and its schedule's pause, in one transaction."""

from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from duly.application.asking import ask_in
from duly.application.attempts import AttemptPace
from duly.application.batch import Drawn
from duly.application.call_backs import end_called_back, waits_for_call_back
from duly.application.cancelling import settle_in
from duly.application.schedules import Changed, Schedules
from duly.domain.amounts import written_amount
from duly.domain.billing import HoldState, OnExceeded, OverBudget
from duly.domain.errors import DulyError
from duly.domain.executions import (
    Claim,
    Ended,
    ErrorCode,
    Execution,
    ExecutionRequest,
    ExecutionStatus,
    LeaseLost,
    WaitsFor,
    failed,
)
from duly.domain.ids import ScheduleId
from duly.domain.payloads import json_of
from duly.domain.reviews import ReviewKind, questions_of, why_unaskable
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Finishing:
    storage: Storage
    dice: Dice
    pace: AttemptPace
    schedules: Schedules

    async def refuse(self, claim: Claim, refusal: DulyError, request: ExecutionRequest) -> Execution:
        """Beyond a budget, as that says: skipped by its outcome, its schedule paused, or a person asked."""
        if isinstance(refusal, OverBudget) and refusal.policy is OnExceeded.ASK:
            return await self.finish(claim, _over_budget(refusal), kind=ReviewKind.BUDGET)
        return await self.finish(claim, failed(refusal.code, str(refusal)), pausing=self._pausing(refusal, request))

    async def finish(
        self,
        claim: Claim,
        ended: Ended,
        *,
        kind: ReviewKind = ReviewKind.GRAPH,
        pausing: "_Pausing | None" = None,
    ) -> Execution:
        """Settles and keeps the outcome, or that it waits, in one transaction; raises LeaseLost if it was fenced."""
        now, earlier_runs = self.storage.clock.now(), count()
        waits_for = WaitsFor.REVIEW if ended.called_back_by is None else WaitsFor.CALL_BACK
        asks = ended.ok is None and waits_for is WaitsFor.REVIEW
        if asks and (why := why_unaskable(ended.result)) is not None:
            ended, asks = failed(ErrorCode.RESULT, why), False
        ids = [self.dice.new_id("review") for _ in questions_of(ended.result)] if asks else []
        paused: list[Changed] = []

        async def work(tx: Transaction) -> Execution:
            is_rerun = next(earlier_runs) > 0
            if ended.ok is None:
                found = await tx.executions.suspend(claim, ended, waits_for)
            else:
                found = await tx.executions.end(claim, ended, now=now)
            if found is None and is_rerun:
                found = _if_ours(await tx.executions.by_key(claim.key), claim)
            if found is None:
                raise LeaseLost(claim.run_id, claim.attempt)
            await settle_in(tx, claim, HoldState.SETTLED, now)
            if found.status is ExecutionStatus.WAITING and asks:
                await ask_in(tx, found, kind, ids, now)
            if waits_for_call_back(found):
                found = await end_called_back(tx, found, now=now)
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


class _Pausing(NamedTuple):
    schedule_id: ScheduleId
    reason: str
    drawn: Drawn


def _over_budget(over: OverBudget) -> Ended:
    amounts = {"asked": written_amount(over.asked), "limit": written_amount(over.limit)}
    about = {"over_budget": str(over), "budget_id": over.budget_id, **amounts}
    return Ended(ok=None, result=json_of(about, field="question"))


def _if_ours(found: Execution | None, claim: Claim) -> Execution | None:
    """What this claim has ended or suspended before."""
    if found is None or found.token != claim.token or found.status is ExecutionStatus.RUNNING:
        return None
    return found
