"""What webhooks tell of, and who asked for it."""

from collections.abc import Iterable
from dataclasses import dataclass

from duly.domain.errors import InvalidInput
from duly.domain.groups import Group
from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.jobs import FinishedJob
from duly.domain.runs import Run

RETRYING = "job.retrying"
TEST = "webhook.test"
TYPES = (
    "job.completed",
    "job.failed",
    "job.skipped",
    "job.cancelled",
    RETRYING,
    "group.completed",
    "group.partial",
    "group.cancelled",
    "run.success",
    "run.error",
    "run.skipped",
    "run.cancelled",
)
_NOUNS = {kind.partition(".")[0] for kind in TYPES}
PATTERNS = ("*", *sorted(f"{noun}.*" for noun in _NOUNS), *TYPES)

Subject = FinishedJob | Group | Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A row of the outbox: the thing as it was when it ended, and the address that it names itself, if any.

    `is_retried` is of a job whose automatic retry was put with its end.
    """

    seq: int
    owner: Owner | None
    url: str | None
    occurred_at: Instant
    subject: Subject
    is_retried: bool = False

    @property
    def type(self) -> str:
        if self.is_retried:
            return RETRYING
        noun = {FinishedJob: "job", Group: "group", Run: "run"}[type(self.subject)]
        return f"{noun}.{self.subject.status.lower()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A row of the outbox that this program can make nothing of: it is set aside, and held against nobody behind it."""

    seq: int
    noun: str
    owner: Owner | None
    url: str | None
    occurred_at: Instant
    subject_id: str
    reason: str

    @property
    def type(self) -> str:
        return f"{self.noun}.unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something to tell. Its id is the `webhook-id` of every delivery and of every try."""

    id: str
    type: str
    owner: Owner | None
    subject_id: str
    occurred_at: Instant
    body: str


def patterns_of(given: Iterable[object], *, field: str = "events") -> tuple[str, ...]:
    """In order and each once; none of them is nothing at all."""
    if isinstance(given, str):
        raise InvalidInput(field, "is a text", fix="give a list of types")
    asked = list(given)
    for pattern in asked:
        if pattern not in PATTERNS:
            raise InvalidInput(field, f"{str(pattern)[:40]!r} is no type of event", fix=f"use {', '.join(PATTERNS)}")
    return tuple(pattern for pattern in PATTERNS if pattern in asked)


def is_asked(patterns: Iterable[str], kind: str) -> bool:
    noun = kind.partition(".")[0]
    return any(pattern in ("*", f"{noun}.*", kind) for pattern in patterns)
