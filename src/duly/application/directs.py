"""What a direct call asks for: a template's job without a row, checked before anybody waits for a place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duly.application.templates import template_known
from duly.application.tickets import Tickets
from duly.domain.errors import InvalidInput
from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import JobId, PoolName, SessionId, TicketId, Token
from duly.domain.instants import Instant, Micros
from duly.domain.jobs import JobState, NewJob
from duly.domain.payloads import Payload
from duly.domain.pools import PoolDraining, PoolMode, UnknownPool
from duly.domain.sessions import ClaimedJob
from duly.domain.templates import Snapshot
from duly.domain.texts import whole_number_of
from duly.domain.tickets import PoolPaused, Ticket
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction

LONGEST = Micros(86_400_000_000)
DEFAULT_WAIT = Micros(60_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """`places` are the pools it needs a place of, in the order in which they are taken, each with its ticket's id."""

    job: ClaimedJob
    places: tuple[tuple[PoolName, TicketId], ...]


@dataclass(frozen=True, slots=True)
class Directs:
    storage: Storage
    dice: Dice

    async def from_template(self, name: str, params: Mapping[str, Any] | None, *, owner: str | None) -> Direct:
        now, drawn = self.storage.clock.now(), self.dice.new_id("dir")

        async def work(tx: Transaction) -> tuple[Snapshot, Payload]:
            made = (await template_known(tx, name, owner)).snapshot(params)
            _require_no_lane(made.new)
            _require_no_graph(made.new)
            await _require_open(tx, made.new)
            return made, made.payload()

        made, payload = await self.storage.read(work)
        return self._direct(made.new, payload, drawn, now)

    async def from_job(self, new: NewJob) -> Direct:
        now, drawn = self.storage.clock.now(), self.dice.new_id("dir")
        _require_no_lane(new)
        _require_no_graph(new)
        await self.storage.read(lambda tx: _require_open(tx, new))
        return self._direct(new, new.payload, drawn, now)

    async def request(self, place: tuple[PoolName, TicketId], *, session: SessionId, wait: Micros) -> Ticket:
        pool, ticket_id = place
        return await self.tickets.request(pool, session=session, wait=wait, ticket_id=ticket_id)

    @property
    def tickets(self) -> Tickets:
        return Tickets(self.storage, self.dice)

    def _direct(self, new: NewJob, payload: Payload, drawn: str, now: Instant) -> Direct:
        job = ClaimedJob(
            id=JobId(drawn),
            kind=new.kind,
            payload=payload,
            key=None,
            lane=None,
            pool=new.pool,
            resources=None,
            attempt=1,
            max_attempts=1,
            run_at=now,
            created_at=now,
            timeout_ms=new.timeout_ms,
            chain=JobId(drawn),
            token=Token(0),
            state=JobState.RUNNING,
            rank=0,
            position=0,
        )
        pools = sorted({new.pool, *new.resources})
        return Direct(job=job, places=tuple((pool, TicketId(self.dice.new_id("tkt"))) for pool in pools))


def wait_of(timeout_ms: object) -> Micros:
    return Micros(whole_number_of(timeout_ms, field="timeout_ms", least=1, most=LONGEST // 1_000) * 1_000)


def _require_no_graph(new: NewJob) -> None:
    """Without a row it has no owner whose grant could pay, and nothing that could wait for a review."""
    if new.kind == GRAPH_RUN:
        raise InvalidInput("kind", "a graph is not called directly", fix="put it as a job, or schedule it")


def _require_no_lane(new: NewJob) -> None:
    if new.lane is not None:
        raise InvalidInput("template", "has a lane, and only jobs have turns in lanes", fix="put it as a job")


async def _require_open(tx: Transaction, new: NewJob) -> None:
    for name in (new.pool, *new.resources):
        pool = await tx.pools.get(name)
        if pool is None:
            raise UnknownPool(name)
        if pool.mode is PoolMode.PAUSED:
            raise PoolPaused(name)
        if pool.mode is PoolMode.DRAINING:
            raise PoolDraining(name)
