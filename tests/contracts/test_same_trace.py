"""One list of actions, one clock, one set of dice: both stores answer alike and end with the same rows."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from duly.domain.errors import DulyError
from duly.domain.ids import JobId, PoolName, TicketId
from duly.domain.instants import Micros
from duly.domain.jobs import COMPLETED
from duly.domain.pools import Pool, PoolMode
from duly.domain.retries import RetryPolicy
from duly.domain.sessions import ClaimedJob, Exchange, Report, Wanted
from tests.contracts.dice import CountingDice
from tests.contracts.shared_postgres import SharedPostgres
from tests.contracts.world import FAILED, Hand, World, new

pytestmark = pytest.mark.store("postgres")

SEEDS = range(5 * int(os.environ.get("DULY_TEST_EFFORT", "1")))
POOLS = ("wide", "aged", "small")
Trace = list[tuple[str, Any]]


@pytest.mark.req("INV-004")
@pytest.mark.req("DEC-005")
@pytest.mark.req("CON-002")
@pytest.mark.parametrize("seed", SEEDS)
def test_both_stores_answer_alike_and_end_with_the_same_rows(
    shared_postgres: SharedPostgres, tmp_path: Path, seed: int
) -> None:
    shared_postgres.empty()

    on_sqlite, sqlite_rows = asyncio.run(_play(World("sqlite", ":memory:"), seed))
    on_postgres, postgres_rows = asyncio.run(_play(World("postgres", shared_postgres.url), seed))

    for step, (here, there) in enumerate(zip(on_sqlite, on_postgres, strict=True)):
        assert here == there, f"step {step} of seed {seed}"
    assert sqlite_rows == postgres_rows
    kinds = {name for name, answer in on_sqlite if not (isinstance(answer, str) and answer.startswith("refused"))}
    assert len(kinds) > 15, "the actions did too little"


async def _play(world: World, seed: int) -> tuple[Trace, dict[str, list[tuple[Any, ...]]]]:
    world.dice = CountingDice()
    await world.open()
    try:
        await world.pool("aged", 3, ageing_ms=500)
        await world.pool("small", 2)
        await world.pool("extra", 1)
        player = Player(world, random.Random(seed))
        trace = [await player.act() for _ in range(200)]
        await world.keeps_the_laws()
        return trace, await world.snapshot()
    finally:
        await world.close()


class Player:
    """Draws the same actions for both stores, as long as both answer alike."""

    def __init__(self, world: World, dice: random.Random) -> None:
        self.world = world
        self.dice = dice
        self.jobs: list[JobId] = []
        self.tickets: list[TicketId] = []
        self.claims: list[tuple[Hand, ClaimedJob]] = []
        self.old_claims: list[tuple[Hand, ClaimedJob]] = []
        self.hands: list[Hand] = []

    async def act(self) -> tuple[str, Any]:
        while len(self.hands) < 2:
            self.hands.append(await self.world.hand(4))
        self.world.clock.advance(micros=self.dice.choice([0, 1, 100_000, 700_000]))
        actions: list[Callable[[], Awaitable[Any]]] = [
            *[self.put] * 6,
            *[self.exchange] * 5,
            self.put_many,
            self.hold,
            self.start,
            self.give_back,
            self.report_again,
            self.cancel,
            *[self.move] * 3,
            self.reprioritise,
            self.define,
            *[self.stage] * 3,
            self.lose,
            self.revoke,
            self.request,
            self.release,
            self.take,
            self.expire,
            self.beat,
            self.prune,
        ]
        action = self.dice.choice(actions)
        try:
            answer = await action()
        except DulyError as error:
            answer = f"refused: {error.code}"
        return action.__name__, answer

    def _new(self) -> Any:
        dice = self.dice
        return new(
            f"kind{dice.randrange(5)}",
            key=dice.choice([None, None, "k", "l"]),
            lane=dice.choice([None, "a", "b"]),
            pool=dice.choice(POOLS),
            priority=dice.randrange(-1, 2),
            resources=dice.choice([[], [], [], ["extra"], ["extra", "small"]]),
            run_at=dice.choice([None, None, self.world.clock.now() + 1_000_000]),
            retry=RetryPolicy(max_attempts=dice.randrange(1, 4), backoff_ms=dice.choice([0, 1_000])),
            params={"n": dice.randrange(100), "text": "é☃"},
        )

    async def put(self) -> Any:
        put = await self.world.queue.jobs.put(self._new())
        self.jobs.append(put.job_id)
        return put

    async def put_many(self) -> Any:
        puts = await self.world.queue.jobs.put_many([self._new() for _ in range(self.dice.randrange(1, 6))])
        self.jobs += [put.job_id for put in puts]
        return puts

    async def exchange(self) -> Any:
        hand = self.dice.choice(self.hands)
        mine = [job for owner, job in self.claims if owner is hand and job.state == "running"]
        done = [job for job in mine if self.dice.random() < 0.7]
        reports = [Report(job, self.dice.choice([COMPLETED, FAILED])) for job in done]
        wanted = {PoolName(pool): Wanted(self.dice.randrange(3)) for pool in self.dice.sample(POOLS, 2)}
        self._drop(done)
        return self._keep(hand, await hand.exchange(reports=reports, wanted=wanted))

    async def hold(self) -> Any:
        hand = self.dice.choice(self.hands)
        return self._keep(hand, await hand.exchange(wanted={PoolName(self.dice.choice(POOLS)): Wanted(0, 2)}))

    async def start(self) -> Any:
        hand = self.dice.choice(self.hands)
        held = [job for owner, job in self.claims if owner is hand and job.state == "claimed"]
        self._drop(held)
        return self._keep(hand, await hand.exchange(starting=held, wanted={}))

    async def give_back(self) -> Any:
        hand = self.dice.choice(self.hands)
        held = [job for owner, job in self.claims if owner is hand and job.state == "claimed"]
        self._drop(held)
        return await self.world.queue.sessions.give_back(hand.session, held)

    async def report_again(self) -> Any:
        if not self.old_claims:
            return None
        hand, job = self.dice.choice(self.old_claims)
        return await hand.exchange(reports=[Report(job, self.dice.choice([COMPLETED, FAILED]))])

    async def cancel(self) -> Any:
        return await self.world.queue.jobs.cancel(self._some(), reason="played")

    async def move(self) -> Any:
        move = self.dice.choice(["before", "after", "swap"])
        return await getattr(self.world.queue.order, move)(self._some(), self._some())

    async def reprioritise(self) -> Any:
        return await self.world.queue.order.reprioritise(self._some(), self.dice.randrange(-1, 2))

    async def define(self) -> Any:
        pool = Pool(
            name=PoolName(self.dice.choice(["small", "extra", "aged"])),
            slots=self.dice.randrange(4),
            mode=self.dice.choice([*PoolMode, PoolMode.OPEN, PoolMode.OPEN]),
            ageing_ms=self.dice.choice([None, 300]),
        )
        return await self.world.queue.pools.define(pool)

    async def stage(self) -> Any:
        return await self.world.queue.jobs.stage()

    async def lose(self) -> Any:
        self.world.clock.advance(20)
        hand = self.hands.pop(self.dice.randrange(2))
        await self.world.queue.sessions.beat(self.hands[0].session)
        self.world.clock.advance(10)
        self._drop([job for owner, job in self.claims if owner is hand])
        return await self.world.queue.sessions.rescue_expired()

    async def revoke(self) -> Any:
        return await self.world.queue.sessions.revoke(self._some(), reason="played")

    async def request(self) -> Any:
        pool = PoolName(self.dice.choice(["small", "extra"]))
        wait = Micros(self.dice.choice([0, 5_000_000]))
        ticket = await self.world.queue.tickets.request(pool, session=self.hands[0].session, wait=wait)
        self.tickets.append(ticket.id)
        return ticket

    async def release(self) -> Any:
        return await self.world.queue.tickets.release(self._ticket())

    async def take(self) -> Any:
        return await self.world.queue.tickets.take(self._ticket())

    async def expire(self) -> Any:
        return await self.world.queue.tickets.expire()

    async def beat(self) -> Any:
        return await self.world.queue.sessions.beat(self.dice.choice(self.hands).session)

    async def prune(self) -> Any:
        return await self.world.queue.jobs.prune(before=self.world.clock.now() - 20_000_000)  # type: ignore[arg-type]

    def _some(self) -> JobId:
        return self.dice.choice(self.jobs[-12:]) if self.jobs else JobId("job_none")

    def _ticket(self) -> TicketId:
        return self.dice.choice(self.tickets[-4:]) if self.tickets else TicketId("tkt_none")

    def _keep(self, hand: Hand, exchange: Exchange) -> Any:
        """In the order given: that is part of the answer."""
        self.claims += [(hand, job) for job in (*exchange.started, *exchange.held)]
        return (list(exchange.started), list(exchange.held), sorted(exchange.stale))

    def _drop(self, jobs: list[ClaimedJob]) -> None:
        gone = {job.id for job in jobs}
        self.old_claims += [(hand, job) for hand, job in self.claims if job.id in gone]
        self.claims = [(hand, job) for hand, job in self.claims if job.id not in gone]
