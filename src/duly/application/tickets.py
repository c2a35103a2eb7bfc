"""Direct calls: a place in a pool, next in turn before the queue, with no job of their own."""

from dataclasses import dataclass

from duly.domain.ids import PoolName, SessionId, TicketId
from duly.domain.instants import Instant, Micros
from duly.domain.texts import whole_number_of
from duly.domain.tickets import Ticket
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction


@dataclass(frozen=True, slots=True)
class Tickets:
    storage: Storage
    dice: Dice

    async def request(
        self, pool: PoolName, *, session: SessionId, wait: Micros, ticket_id: TicketId | None = None
    ) -> Ticket:
        """Held at once if there is room, else waiting in turn for at most `wait`.

        Who must be able to release it, even if this is never answered, gives a `ticket_id`.
        """
        whole_number_of(wait, field="wait", least=0, most=86_400_000_000)
        now = self.storage.clock.now()
        ticket = Ticket(
            id=ticket_id or TicketId(self.dice.new_id("tkt")),
            pool=pool,
            session=session,
            created_at=now,
            expires_at=Instant(now + wait),
        )

        async def work(tx: Transaction) -> Ticket:
            return await tx.tickets.request(ticket)

        return await self.storage.transact(work)

    async def take(self, ticket_id: TicketId) -> Ticket:
        """The ticket, held now if its turn has come."""

        async def work(tx: Transaction) -> Ticket:
            return await tx.tickets.take(ticket_id)

        return await self.storage.transact(work)

    async def release(self, ticket_id: TicketId) -> None:
        async def work(tx: Transaction) -> None:
            await tx.tickets.release(ticket_id)

        await self.storage.transact(work)

    async def expire(self) -> int:
        """Forgets waiting tickets that are overdue."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> int:
            return await tx.tickets.expire(now)

        return await self.storage.transact(work)
