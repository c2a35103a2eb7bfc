"""Tickets in SQL: every change is made under the pool's row, which keeps turns and limits exact."""

from collections import Counter

from duly.domain.ids import PoolName, SessionId, TicketId
from duly.domain.instants import Instant
from duly.domain.pools import Pool, PoolMode, UnknownPool
from duly.domain.sessions import SessionLost
from duly.domain.tickets import Ticket, TicketState, UnknownTicket
from duly.storage.executor import Executor
from duly.storage.sql.claims import Claims
from duly.storage.sql.rows import pool_from_row, ticket_from_row
from duly.storage.sql.topics import TICKET, pool_topic


class SqlTickets:
    __slots__ = ("_claims", "_x")

    def __init__(self, executor: Executor, claims: Claims) -> None:
        self._x = executor
        self._claims = claims

    async def request(self, ticket: Ticket) -> Ticket:
        await self._lock_pool(ticket.pool)
        if not await self._x.fetch("hold_session", id=ticket.session):
            raise SessionLost(ticket.session)
        added = await self._x.fetch(
            "add_ticket",
            id=ticket.id,
            pool=ticket.pool,
            session=ticket.session,
            created_at=ticket.created_at,
            expires_at=ticket.expires_at,
        )
        if added:
            await self._x.fetch("count_waiting", name=ticket.pool, change=1)
        return await self.take(ticket.id)

    async def take(self, ticket_id: TicketId) -> Ticket:
        ticket = await self._find(ticket_id)
        if ticket is None:
            raise UnknownTicket(ticket_id)
        if ticket.state is TicketState.HELD:
            return ticket
        pool = await self._lock_pool(ticket.pool)
        ((ahead,),) = await self._x.fetch("tickets_ahead", pool=ticket.pool, created_at=ticket.created_at, id=ticket_id)
        if pool.mode is PoolMode.PAUSED or pool.used + ahead >= pool.slots:
            return ticket
        await self._x.fetch("hold_ticket", id=ticket_id)
        await self._x.fetch("count_waiting", name=ticket.pool, change=-1)
        await self._x.fetch("count_held", name=ticket.pool, change=1)
        return Ticket(
            id=ticket.id,
            pool=ticket.pool,
            session=ticket.session,
            created_at=ticket.created_at,
            expires_at=ticket.expires_at,
            state=TicketState.HELD,
        )

    async def release(self, ticket_id: TicketId) -> None:
        ticket = await self._find(ticket_id)
        if ticket is not None:
            await self._remove(ticket)

    async def expire(self, now: Instant) -> int:
        overdue = [ticket_from_row(row) for row in await self._x.fetch("overdue_tickets", now=now)]
        for ticket in overdue:
            await self._remove(ticket)
        return len(overdue)

    async def release_all_of(self, session: SessionId) -> int:
        tickets = [ticket_from_row(row) for row in await self._x.fetch("tickets_of_session", session=session)]
        for ticket in tickets:
            await self._remove(ticket)
        return len(tickets)

    async def _find(self, ticket_id: TicketId) -> Ticket | None:
        for row in await self._x.fetch("ticket_by_id_locked", id=ticket_id):
            return ticket_from_row(row)
        return None

    async def _remove(self, ticket: Ticket) -> None:
        await self._x.fetch("remove_ticket", id=ticket.id)
        if ticket.state is TicketState.HELD:
            await self._claims.release(Counter([ticket.pool]))
        else:
            # The place that was kept for it may be what a parked job lacks.
            ((has_parked,),) = await self._x.fetch("count_waiting", name=ticket.pool, change=-1)
            await self._claims.unpark([ticket.pool] if has_parked else [])
        self._x.wake(TICKET)
        self._x.wake(pool_topic(ticket.pool))

    async def _lock_pool(self, name: PoolName) -> Pool:
        for row in await self._x.fetch("lock_pool", name=name):
            return pool_from_row(row)
        raise UnknownPool(name)
