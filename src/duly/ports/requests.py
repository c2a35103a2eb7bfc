"""Requests that carry idempotency keys, as a store keeps them."""

from typing import Protocol

from duly.domain.instants import Instant, Micros
from duly.domain.requests import Answer, Claimed, Request


class RequestStore(Protocol):
    async def claim(
        self, request: Request, drawn: Claimed, *, lease: Micros, era: str, lease_now: Micros, now: Instant
    ) -> Claimed | Answer:
        """The claim or the kept answer; raises KeyReused or StillRunning.

        A claim whose lease ran out, or was counted by the clock of another era, is taken over with its own draw.
        """

    async def answer(self, request: Request, claimed: Claimed, answer: Answer) -> None:
        """Keeps the answer, if the claim still stands."""

    async def abandon(self, request: Request, claimed: Claimed) -> None:
        """Lets the next claim take over, if this one still stands."""

    async def prune(self, before: Instant, most: int, *, era: str, lease_now: Micros) -> int:
        """Forgets requests last claimed before an instant, oldest first; answers how many.

        Only those that are answered, or whose lease ran out: a claim that stands is nobody's to forget.
        """
