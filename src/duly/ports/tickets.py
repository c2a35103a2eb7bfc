"""Tickets as a store keeps them."""

from typing import Protocol

from duly.domain.ids import TicketId
from duly.domain.instants import Instant
from duly.domain.tickets import Ticket


class TicketStore(Protocol):
    async def request(self, ticket: Ticket) -> Ticket:
        """Takes the next place of the pool: held at once if there is room, else waiting in turn, before the queue."""

    async def take(self, ticket_id: TicketId) -> Ticket:
        """The ticket as it stands, held now if its turn has come; raises UnknownTicket when it is gone."""

    async def release(self, ticket_id: TicketId) -> None:
        """Gives the place back; releasing a ticket that is gone changes nothing."""

    async def expire(self, now: Instant) -> int:
        """Forgets waiting tickets that are overdue; answers how many."""
