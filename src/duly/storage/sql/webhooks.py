"""Webhooks in SQL."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.jobs import FinishedJob, JobStatus
from duly.domain.webhooks.deliveries import CLOSED, Attempt, Breaker, Delivery, DeliveryState, Errand
from duly.domain.webhooks.endpoints import Endpoint
from duly.domain.webhooks.events import Ended, Event, Unreadable
from duly.storage.executor import Executor
from duly.storage.sql.rows import PAST_EVERY_ID
from duly.storage.sql.topics import WEBHOOKS
from duly.storage.sql.webhook_rows import (
    attempt_from_row,
    delivery_from_row,
    ended_from_row,
    endpoint_from_row,
    errand_from_row,
)

_LONG_AGO = Instant(0)
_ORPHANS = 10_000


class SqlWebhooks:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, endpoint: Endpoint) -> Endpoint:
        await self._x.fetch(
            "insert_endpoint",
            id=endpoint.id,
            owner=endpoint.owner,
            url=endpoint.url,
            host=endpoint.host,
            events=",".join(endpoint.events),
            everything=int(endpoint.everything),
            note=endpoint.note,
            signing_key=endpoint.secret,
            now=endpoint.created_at,
        )
        self._x.wake(WEBHOOKS)
        (row,) = await self._x.fetch("endpoint_at", owner=endpoint.owner, url=endpoint.url)
        return endpoint_from_row(row)

    async def get(self, endpoint_id: str) -> Endpoint | None:
        for row in await self._x.fetch("endpoint_by_id", id=endpoint_id):
            return endpoint_from_row(row)
        return None

    async def lock(self, endpoint_id: str) -> Endpoint | None:
        for row in await self._x.fetch("endpoint_by_id_locked", id=endpoint_id):
            return endpoint_from_row(row)
        return None

    async def at(self, owner: Owner, url: str) -> Endpoint | None:
        for row in await self._x.fetch("endpoint_at", owner=owner, url=url):
            return endpoint_from_row(row)
        return None

    async def count(self, owner: Owner) -> int:
        ((count,),) = await self._x.fetch("count_endpoints", owner=owner)
        return int(count)

    async def listed(self, owner: Owner | None, *, after: str | None, most: int) -> list[Endpoint]:
        rows = await self._x.fetch("endpoints_listed", owner=owner, after=after or "", most=most)
        return [endpoint_from_row(row) for row in rows]

    async def save(self, endpoint: Endpoint) -> None:
        await self._x.fetch(
            "update_endpoint",
            id=endpoint.id,
            events=",".join(endpoint.events),
            everything=int(endpoint.everything),
            note=endpoint.note,
            signing_key=endpoint.secret,
            old_signing_key=endpoint.old_secret,
            old_key_until=endpoint.old_secret_until,
            disabled_at=endpoint.disabled_at,
            disabled_reason=endpoint.disabled_reason,
            updated_at=endpoint.updated_at,
        )

    async def delete(self, endpoint: Endpoint) -> None:
        await self._x.fetch("delete_endpoint", id=endpoint.id)
        await self._x.fetch("forget_attempts_of_endpoint", endpoint_id=endpoint.id)
        await self._x.fetch("forget_deliveries_of_endpoint", endpoint_id=endpoint.id)
        await self._x.fetch("forget_events_of_nobody", most=_ORPHANS)
        # After its deliveries: a report that was under way has noted its host before they could be deleted.
        await self._x.fetch("forget_host_of_nobody", owner=endpoint.owner, host=endpoint.host)

    async def listening_to(self, owner: Owner | None) -> list[Endpoint]:
        return [endpoint_from_row(row) for row in await self._x.fetch("endpoints_for", owner=owner)]

    async def has_work(self) -> bool:
        return bool(await self._x.fetch("has_endpoints") or await self._x.fetch("has_outbox"))

    async def next_at(self) -> Instant | None:
        if await self._x.fetch("has_outbox"):
            return _LONG_AGO
        ((at,),) = await self._x.fetch("next_delivery_at")
        return None if at is None else Instant(at)

    async def ended(self, most: int, *, aside_after: int | None = None) -> list[Ended | Unreadable]:
        if aside_after is None:
            rows = await self._x.fetch("some_of_outbox", most=most)
        else:
            rows = await self._x.fetch("some_set_aside", after=aside_after, most=most)
        return [await self._retried_or_not(ended_from_row(row)) for row in rows]

    async def _retried_or_not(self, found: Ended | Unreadable) -> Ended | Unreadable:
        if isinstance(found, Ended) and await self._is_retried(found):
            return replace(found, is_retried=True)
        return found

    async def set_aside(self, seq: int, *, reason: str, now: Instant) -> None:
        await self._x.fetch("set_aside", seq=seq, reason=reason, now=now)

    async def aside(self) -> tuple[int, str | None]:
        ((count, reason),) = await self._x.fetch("count_set_aside")
        return int(count), reason

    async def _is_retried(self, ended: Ended) -> bool:
        job = ended.subject
        if not isinstance(job, FinishedJob) or job.status is not JobStatus.FAILED:
            return False
        return bool(await self._x.fetch("was_retried", chain=job.chain, id=job.id))

    async def take(self, seq: int) -> None:
        await self._x.fetch("take_from_outbox", seq=seq)

    async def tell(
        self, event: Event, deliveries: Sequence[tuple[str, str]], *, now: Instant, give_up: Instant
    ) -> None:
        await self._x.fetch(
            "insert_event",
            id=event.id,
            type=event.type,
            owner=event.owner,
            subject_id=event.subject_id,
            occurred_at=event.occurred_at,
            body=event.body,
        )
        for delivery_id, endpoint_id in deliveries:
            await self._x.fetch(
                "insert_delivery",
                id=delivery_id,
                event_id=event.id,
                endpoint_id=endpoint_id,
                type=event.type,
                subject_id=event.subject_id,
                now=now,
                give_up_at=give_up,
            )
        self._x.wake(WEBHOOKS)

    async def due(self, now: Instant, most: int, *, claim: str) -> list[Errand]:
        rows = await self._x.fetch("deliveries_due", now=now, most=most)
        return [errand_from_row(row, claim) for row in rows]

    async def endpoints_due(self, now: Instant) -> list[Endpoint]:
        return [endpoint_from_row(row) for row in await self._x.fetch("endpoints_due", now=now)]

    async def next_due_of(self, endpoint: Endpoint, now: Instant, *, claim: str) -> Errand | None:
        for row in await self._x.fetch("deliveries_due_of_endpoint", endpoint_id=endpoint.id, now=now):
            return errand_from_row(row, claim)
        return None

    async def held(self, claim: str) -> list[Errand]:
        return [errand_from_row(row, claim) for row in await self._x.fetch("deliveries_held", claim=claim)]

    async def claim(self, delivery_id: str, claim: str, *, until: Instant) -> None:
        await self._x.fetch("claim_delivery", id=delivery_id, claim=claim, until=until)

    async def postpone(self, delivery_id: str, *, until: Instant) -> None:
        await self._x.fetch("postpone_delivery", id=delivery_id, until=until)

    async def postpone_host(self, endpoint: Endpoint, *, until: Instant) -> None:
        await self._x.fetch("postpone_host", owner=endpoint.owner, host=endpoint.host, until=until)

    async def fail(self, delivery_id: str, *, error: str, now: Instant) -> None:
        await self._x.fetch("fail_delivery", id=delivery_id, error=error, now=now)

    async def fail_all_of(self, endpoint_id: str, *, error: str, now: Instant) -> None:
        await self._x.fetch("fail_deliveries_of_endpoint", endpoint_id=endpoint_id, error=error, now=now)

    async def report(self, delivery: Delivery, claim: str) -> bool:
        rows = await self._x.fetch(
            "report_delivery",
            id=delivery.id,
            claim=claim,
            state=delivery.state.value,
            tries=delivery.tries,
            attempts=delivery.attempts,
            due_at=delivery.due_at,
            status=delivery.status,
            error=delivery.error,
            ended_at=delivery.ended_at,
        )
        return bool(rows)

    async def add_attempt(self, delivery_id: str, attempt: Attempt) -> None:
        await self._x.fetch(
            "insert_attempt",
            delivery_id=delivery_id,
            number=attempt.number,
            at=attempt.at,
            ms=attempt.ms,
            status=attempt.status,
            error=attempt.error,
            excerpt=attempt.excerpt,
        )

    async def attempts(self, delivery_id: str) -> list[Attempt]:
        return [attempt_from_row(row) for row in await self._x.fetch("attempts_of", delivery_id=delivery_id)]

    async def delivery(self, delivery_id: str, *, locked: bool = False) -> Delivery | None:
        for row in await self._x.fetch("delivery_by_id_locked" if locked else "delivery_by_id", id=delivery_id):
            return delivery_from_row(row)
        return None

    async def deliveries(
        self,
        owner: Owner | None,
        *,
        endpoint_id: str | None,
        subject_id: str | None,
        state: DeliveryState | None,
        before: str | None,
        most: int,
    ) -> list[Delivery]:
        asked: dict[str, Any] = {"owner": owner, "endpoint_id": endpoint_id, "state": state and state.value}
        asked |= {"before": before or PAST_EVERY_ID, "most": most}
        if subject_id is not None:
            rows = await self._x.fetch("deliveries_listed_of_subject", subject_id=subject_id, **asked)
        else:
            aside = "" if state in {None, DeliveryState.DELIVERED} else "_aside"
            whose = "_of_endpoint" if endpoint_id is not None else "" if owner is None else "_of_owner"
            rows = await self._x.fetch(f"deliveries_listed{aside}{whose}", **asked)
        return [delivery_from_row(row) for row in rows]

    async def send_again(self, delivery_id: str, *, now: Instant, give_up: Instant) -> None:
        await self._x.fetch("send_again", id=delivery_id, now=now, give_up_at=give_up)
        self._x.wake(WEBHOOKS)

    async def breaker(self, endpoint: Endpoint) -> Breaker:
        for failures, rests, open_until, probe in await self._x.fetch(
            "host_of", owner=endpoint.owner, host=endpoint.host
        ):
            return Breaker(failures=failures, rests=rests, open_until=open_until, probe=probe)
        return CLOSED

    async def note_host(self, endpoint: Endpoint) -> None:
        await self._x.fetch("note_host", owner=endpoint.owner, host=endpoint.host)

    async def save_breaker(self, endpoint: Endpoint, breaker: Breaker) -> None:
        if breaker == CLOSED:
            await self._x.fetch("forget_host", owner=endpoint.owner, host=endpoint.host)
            return
        await self._x.fetch(
            "save_host",
            owner=endpoint.owner,
            host=endpoint.host,
            failures=breaker.failures,
            rests=breaker.rests,
            open_until=breaker.open_until,
            probe=breaker.probe,
        )

    async def prune(self, before: Instant, most: int) -> int:
        pruned = await self._x.fetch("prune_deliveries", before=before, most=most)
        for delivery_id, event_id in pruned:
            await self._x.fetch("forget_attempts", delivery_id=delivery_id)
            await self._x.fetch("forget_event", event_id=event_id)
        return len(pruned)
