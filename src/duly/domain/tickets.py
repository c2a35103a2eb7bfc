"""A ticket: a direct call's leased place in a pool, next in turn before the queue, with no job of its own."""

from dataclasses import dataclass
from enum import StrEnum

from duly.domain.errors import Conflict, NotFound, Unavailable
from duly.domain.ids import PoolName, SessionId, TicketId
from duly.domain.instants import Instant


class TicketState(StrEnum):
    WAITING = "waiting"
    HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Waits until `expires_at`; once held, it lasts as long as its session lives."""

    id: TicketId
    pool: PoolName
    session: SessionId
    created_at: Instant
    expires_at: Instant
    state: TicketState = TicketState.WAITING


class UnknownTicket(NotFound):
    """The ticket was released, expired, or its session is gone."""

    code = "unknown_ticket"

    def __init__(self, ticket_id: TicketId) -> None:
        super().__init__(f"there is no ticket {ticket_id}: it was released or has expired")
        self.ticket_id = ticket_id


class NoHandler(Conflict):
    """The process that was asked does not run what the template names."""

    code = "no_handler"

    def __init__(self, kind: str) -> None:
        super().__init__(f"this process has no handler for {kind!r}: ask one that was started with the program")
        self.kind = kind


class PoolPaused(Conflict):
    """The pool starts nothing until it is opened again."""

    code = "pool_paused"

    def __init__(self, name: str) -> None:
        super().__init__(f"pool {name!r} is paused and starts nothing; open it, or put a job that waits")
        self.name = name


class DirectFailed(Conflict):
    """The handler of a direct call failed, and says why."""

    code = "direct_failed"

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class Deadline(Unavailable):
    """A direct call did not end in time: it was stopped, and its place is free again."""

    code = "deadline"

    def __init__(self, name: str, *, waited: bool) -> None:
        why = "no place of its pool became free" if waited else "it did not end"
        super().__init__(f"{name!r}: {why} in time; it was stopped, and its place is free again")
        self.name = name


class DirectStopped(Unavailable):
    """A direct call ended before its handler did: its process stops, or lost its place."""

    code = "direct_stopped"

    def __init__(self, name: str, *, why: str) -> None:
        super().__init__(f"{name!r} was stopped: {why}; call again")
        self.name = name
