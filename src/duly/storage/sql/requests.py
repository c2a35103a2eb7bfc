"""Requests that carry idempotency keys, in SQL."""

import json
from typing import Any

from duly.domain.errors import Unavailable
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.requests import Answer, Claimed, KeyReused, Request, StillRunning
from duly.storage.executor import Executor, Row

_MOST_ROUNDS = 10


class SqlRequests:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def claim(
        self, request: Request, drawn: Claimed, *, lease: Micros, era: str, lease_now: Micros, now: Instant
    ) -> Claimed | Answer:
        claim = {"token": drawn.token, "era": era, "expires_at": lease_now + lease, "now": now, **_names(request)}
        for _ in range(_MOST_ROUNDS):
            if await self._x.fetch("claim_request", hash=request.hash, draw=drawn.draw, **claim):
                return drawn
            for row in await self._x.fetch("request_locked", **_names(request)):
                found = _judged(row, request, drawn, era=era, lease_now=lease_now)
                if isinstance(found, Claimed):
                    await self._x.fetch("take_over_request", **claim)
                return found
        raise Unavailable("the request keeps being pruned and claimed anew; try again")

    async def answer(self, request: Request, claimed: Claimed, answer: Answer) -> None:
        await self._x.fetch(
            "answer_request",
            token=claimed.token,
            status=answer.status,
            content_type=answer.content_type,
            headers=json.dumps(answer.headers),
            body=answer.body,
            **_names(request),
        )

    async def abandon(self, request: Request, claimed: Claimed) -> None:
        await self._x.fetch("abandon_request", token=claimed.token, **_names(request))

    async def prune(self, before: Instant, most: int, *, era: str, lease_now: Micros) -> int:
        rows = await self._x.fetch("prune_requests", before=before, most=most, era=era, lease_now=lease_now)
        return len(rows)


def _names(request: Request) -> dict[str, Any]:
    return {"owner": request.owner, "route": request.route, "key": request.key}


def _judged(row: Row, request: Request, drawn: Claimed, *, era: str, lease_now: Micros) -> Claimed | Answer:
    request_hash, draw, token, row_era, expires_at, status, content_type, headers, body = row
    if request_hash != request.hash:
        raise KeyReused
    if status is not None:
        kept = tuple((name, value) for name, value in json.loads(headers))
        return Answer(status=status, content_type=content_type, body=bytes(body), headers=kept)
    # The same token is our own: an earlier run of this work committed, and its answer was lost.
    if token != drawn.token and row_era == era and expires_at > lease_now:
        raise StillRunning(-(-(expires_at - lease_now) // SECOND))
    return Claimed(draw=draw, token=drawn.token, is_repeated=token != drawn.token)
