"""Rows of webhooks to domain objects and back."""

import json
import re
from typing import Any

from duly.domain.webhooks.deliveries import Attempt, Delivery, DeliveryState, Errand
from duly.domain.webhooks.endpoints import Endpoint
from duly.domain.webhooks.events import Ended, Subject, Unreadable
from duly.storage.executor import Row
from duly.storage.sql.group_rows import group_from_row
from duly.storage.sql.rows import finished_from_row
from duly.storage.sql.schedule_rows import run_from_row

_DELIVERY_WIDTH = 15
_SUBJECTS: dict[str, Any] = {"job": finished_from_row, "group": group_from_row, "run": run_from_row}
_FIRST_TEXT = re.compile(r'\s*\[\s*"([^"\\]{1,200})"')


def endpoint_from_row(row: Row) -> Endpoint:
    return Endpoint(
        id=row[0],
        owner=row[1],
        url=row[2],
        host=row[3],
        events=tuple(row[4].split(",")) if row[4] else (),
        everything=bool(row[5]),
        note=row[6],
        secret=row[7],
        old_secret=row[8],
        old_secret_until=row[9],
        disabled_at=row[10],
        disabled_reason=row[11],
        created_at=row[12],
        updated_at=row[13],
    )


def delivery_from_row(row: Row) -> Delivery:
    return Delivery(
        id=row[0],
        event_id=row[1],
        endpoint_id=row[2],
        owner=row[3],
        type=row[4],
        subject_id=row[5],
        state=DeliveryState(row[6]),
        tries=row[7],
        attempts=row[8],
        due_at=row[9],
        give_up_at=row[10],
        status=row[11],
        error=row[12],
        created_at=row[13],
        ended_at=row[14],
    )


def errand_from_row(row: Row, claim: str) -> Errand:
    return Errand(
        delivery=delivery_from_row(row[:_DELIVERY_WIDTH]),
        body=row[_DELIVERY_WIDTH],
        endpoint=endpoint_from_row(row[_DELIVERY_WIDTH + 1 :]),
        claim=claim,
    )


def attempt_from_row(row: Row) -> Attempt:
    number, at, ms, status, error, excerpt = row
    return Attempt(number=number, at=at, ms=ms, status=status, error=error, excerpt=excerpt)


def ended_from_row(row: Row) -> Ended | Unreadable:
    seq, noun, owner, url, occurred_at, subject = row
    try:
        thing = _subject(noun, subject)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, those behind it can be told
        return Unreadable(
            seq=seq,
            noun=noun,
            owner=owner,
            url=url,
            occurred_at=occurred_at,
            subject_id=_id_in(subject),
            reason=f"{type(error).__name__}: {error}",
        )
    return Ended(seq=seq, owner=owner, url=url, occurred_at=occurred_at, subject=thing)


def _subject(noun: str, text: str) -> Subject:
    if noun not in _SUBJECTS:
        raise ValueError(f"this version knows no {noun}")
    thing: Subject = _SUBJECTS[noun](tuple(json.loads(text)))
    # What is looked up by them must be text, as whoever wrote it should have seen to.
    if not all(isinstance(each, str) for each in (thing.id, getattr(thing, "chain", ""))):
        raise TypeError(f"the id of a {noun} is no text")
    return thing


def _id_in(text: str) -> str:
    """Every subject begins with it, even one that ends too soon."""
    found = _FIRST_TEXT.match(text)
    return found[1] if found else "unknown"
