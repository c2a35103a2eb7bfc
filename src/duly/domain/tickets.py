"""A ticket: a direct call's leased place in a pool, next in turn before the queue, with no job of its own."""

from dataclasses import dataclass
from enum import StrEnum

from duly.domain.errors import NotFound
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
