"""Executions of graphs as a store keeps them: one row for each key, fenced by a token."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from duly.domain.executions import Claim, Ended, Execution, ExecutionEvent, WaitsFor
from duly.domain.ids import JobId
from duly.domain.instants import Instant, Micros
from duly.domain.payloads import Payload


class Lease(NamedTuple):
    """Until when an attempt is the only one, by the clock of an era."""

    era: str
    expires_at: Micros


class ExecutionStore(Protocol):
    async def add(self, execution: Execution) -> bool:
        """Whether its key was free."""

    async def bury(self, tombstone: Execution) -> bool:
        """Whether its key was free, or that of another call's tombstone: what was cancelled before it came is over."""

    async def replace_tombstone(self, execution: Execution) -> None:
        """Of a key that the caller has locked, and whose tombstone is not for this call."""

    async def prune_tombstones(self, before: Instant, most: int) -> int:
        """Oldest first; answers how many were forgotten."""

    async def by_key(self, key: str) -> Execution | None: ...

    async def lock_key(self, key: str) -> Execution | None:
        """Kept from changing until commit."""

    async def by_run(self, run_id: str) -> Execution | None: ...

    async def lock_run(self, run_id: str) -> Execution | None:
        """Kept from changing until commit."""

    async def begin_attempt(self, claim: Claim, lease: Lease, *, reply: Payload | None) -> None:
        """Of an execution that the caller has locked."""

    async def renew(self, claim: Claim, lease: Lease) -> bool:
        """Whether the claim still stands."""

    async def stands(self, run_id: str, token: int) -> bool:
        """Whether it does, and goes on doing so until commit."""

    async def end(self, claim: Claim, ended: Ended, *, now: Instant) -> Execution | None:
        """As it is then; none if the claim did not stand any more. The first end is kept."""

    async def suspend(self, claim: Claim, ended: Ended, waits_for: WaitsFor) -> Execution | None:
        """As it is then; none if the claim did not stand any more."""

    async def await_with(self, run_id: str, job_id: JobId) -> None:
        """Which job goes on with an execution that waits for a call-back; one that has ended does not."""

    async def reply(self, run_id: str, reply: Payload) -> None:
        """Of an execution that waits; the first reply stands."""

    async def add_events(self, events: Sequence[ExecutionEvent]) -> None:
        """An event whose number is taken is the same event, told again."""

    async def last_event(self, run_id: str) -> int: ...

    async def events(self, run_id: str, *, after: int, most: int) -> list[ExecutionEvent]:
        """In order."""

    async def waiting(self, *, after: str, most: int) -> list[Execution]:
        """In order of run."""
