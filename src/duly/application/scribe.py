"""Writes down what a graph tells: events in order and in batches, receipts one by one and at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from duly.application.money import Money
from duly.domain.billing import MaySpendNothing, Receipt, Usage
from duly.domain.errors import InvalidInput
from duly.domain.executions import (
    Claim,
    ErrorCode,
    EventKind,
    ExecutionEvent,
    GraphFailed,
    LeaseLost,
    ModelCall,
)
from duly.domain.instants import SECOND, Micros
from duly.domain.payloads import Payload, json_of, value_of
from duly.ports.graphs import GraphEvent
from duly.ports.storage import Storage, Transaction

T = TypeVar("T")

MOST_EVENTS = 50_000
LARGEST_EVENT_BYTES = 65_536
_MOST_WAITING = 1_000
_LONGEST_TOKENS = 2_000
_PAUSE = Micros(SECOND // 5)


class Insist(Protocol):
    async def __call__(self, storage: Storage, write: Callable[[], Awaitable[T]], /) -> T: ...


class Scribe:
    """A graph that may not spend is told so by `require_…`, and what it spent all the same is written down as ever."""

    def __init__(self, *, storage: Storage, money: Money, claim: Claim, insist: Insist, may_spend: bool = True) -> None:
        self._storage = storage
        self._money = money
        self._claim = claim
        self._insist = insist
        self._may_spend = may_spend
        self._beyond: MaySpendNothing | None = None
        self._seq = 0
        self._told = 0
        self._waiting: list[ExecutionEvent] = []
        self._something = asyncio.Event()
        self._turn = asyncio.Lock()

    async def begin(self) -> None:
        """Goes on counting where the last attempt stopped, if there was one."""
        if self._claim.attempt > 1:
            self._seq = await self._storage.read(lambda tx: tx.executions.last_event(self._claim.run_id))

    def require_payable(self, model: str | None) -> None:
        if not self._may_spend and (model is None or not self._money.prices.is_free(model)):
            raise MaySpendNothing(model)

    def require_in_bounds(self) -> None:
        if self._beyond is not None:
            raise self._beyond

    async def note(self, event: GraphEvent) -> None:
        """What was spent is written before anything more is heard: it must not be lost."""
        self._told += 1
        if self._told > MOST_EVENTS:
            raise GraphFailed(f"the graph told more than {MOST_EVENTS} events", error_code=ErrorCode.LOUD)
        if event.model_call is not None:
            await self._receipt(event.model_call)
            self._judge(event.model_call)
        if not self._joined(event):
            self._seq += 1
            now, claim = self._storage.clock.now(), self._claim
            data = _kept(event.data)
            self._waiting.append(ExecutionEvent(claim.run_id, self._seq, claim.attempt, now, event.kind, data))
        self._something.set()
        if len(self._waiting) >= _MOST_WAITING:
            await self._flush()

    async def write_along(self) -> None:
        """Goes on for ever; a pause between two batches, since every commit is everybody's time."""
        while True:
            await self._something.wait()
            await self._flush()
            await self._storage.clock.sleep(_PAUSE)

    async def close(self) -> None:
        await self._flush()

    async def _receipt(self, call: ModelCall) -> Receipt:
        usage = _usage_of(call)
        claim = self._claim

        async def write() -> Receipt:
            return await self._money.receipt(claim.run_id, claim.attempt, call.unit, usage=usage)

        return await self._insist(self._storage, write)

    def _judge(self, call: ModelCall) -> None:
        """Not raised here: what else was told and not written yet would be lost, and that money is gone, too."""
        try:
            self.require_payable(call.model)
        except MaySpendNothing as beyond:
            self._beyond = self._beyond or beyond

    def _joined(self, event: GraphEvent) -> bool:
        """Text that comes piece by piece is one event, as long as it has not been written."""
        last = self._waiting[-1] if self._waiting else None
        if last is None or not (event.kind is last.kind is EventKind.TOKEN):
            return False
        told = _text_of(last.data, event.data)
        if told is None:
            return False
        self._waiting[-1] = last._replace(data=told)
        return True

    async def _flush(self) -> None:
        async with self._turn:
            batch, self._waiting = self._waiting, []
            self._something.clear()
            if not batch:
                return

            async def work(tx: Transaction) -> None:
                if not await tx.executions.stands(self._claim.run_id, self._claim.token):
                    raise LeaseLost(self._claim.run_id, self._claim.attempt)
                await tx.executions.add_events(batch)

            await self._insist(self._storage, lambda: self._storage.transact(work))


def _text_of(last: Payload, told: Any) -> Payload | None:
    known = value_of(last)
    same = {**known, "text": None} == {**told, "text": None}
    if not same or not isinstance(told.get("text"), str) or len(known.get("text", "")) > _LONGEST_TOKENS:
        return None
    return _kept({**known, "text": known["text"] + told["text"]})


def _usage_of(call: ModelCall) -> Usage | None:
    """Figures that make no sense are none: it is unmetered, and seen."""
    if not call.is_metered or call.model is None or call.input_tokens is None or call.output_tokens is None:
        return None
    try:
        return Usage(
            model=call.model,
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            cache_read_tokens=call.cache_read_tokens,
            cache_write_tokens=call.cache_write_tokens,
        )
    except InvalidInput:
        return None


def _kept(data: Any) -> Payload:
    """What cannot be kept is told by why: an event is for people to see, and no reason to fail."""
    try:
        text = json_of(dict(data), field="data")
    except (InvalidInput, RecursionError) as error:
        return json_of({"left_out": str(error)[:500]}, field="data")
    size = len(text.encode())
    return text if size <= LARGEST_EVENT_BYTES else json_of({"left_out": f"{size} bytes"}, field="data")
