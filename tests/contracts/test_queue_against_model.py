"""Any sequence of what callers, workers and time may do, against a model of plain dicts."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from duly.domain.errors import DulyError
from duly.domain.ids import JobId, PoolName
from duly.domain.retries import RetryPolicy
from duly.domain.sessions import ClaimedJob, Wanted
from tests.contracts.dice import CountingDice
from tests.contracts.model import BACKOFF, SLOTS, Model, Refusal
from tests.contracts.shared_postgres import SharedPostgres
from tests.contracts.world import Hand, World

POOL = PoolName("pool")
INDEX = st.integers(0, 10_000)
# 1 at every commit; nightly runs say more, and then draw anew each time.
EFFORT = int(os.environ.get("DULY_TEST_EFFORT", "1"))


class QueueAgainstModel(RuleBasedStateMachine):
    """Jobs are named by the model; a retry is named after the job it retries."""

    def __init__(self, store: str, place: str) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = World(store, place)
        self.world.dice = CountingDice()
        self.model = Model()
        self.ids: dict[str, JobId] = {}
        self.names: dict[str, str] = {}
        self.hands: list[Hand] = []
        self.claims: dict[str, ClaimedJob] = {}
        self.lost: list[tuple[Hand, ClaimedJob]] = []
        self.moved = False

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        async def work() -> None:
            await self.world.open()
            await self.world.pool(POOL, SLOTS)
            self.hands = [await self.world.hand() for _ in range(2)]

        self.run(work())

    def teardown(self) -> None:
        if self.hands:
            self.run(self.world.keeps_the_laws())
        self.run(self.world.close())
        self.runner.close()

    # Callers.

    @rule(
        lane=st.sampled_from([None, "a", "a", "b"]),
        key=st.sampled_from([None, None, "k", "l"]),
        priority=st.integers(0, 2),
        delay=st.sampled_from([0, 0, 0, 1, 5]),
        max_attempts=st.integers(1, 3),
    )
    def put(self, lane: str | None, key: str | None, priority: int, delay: int, max_attempts: int) -> None:
        self.world.clock.advance(micros=10)
        put = self.run(
            self.world.puts(
                pool=POOL,
                lane=lane,
                key=key,
                priority=priority,
                run_at=self._instant(self.model.now + delay) if delay else None,
                retry=RetryPolicy(max_attempts=max_attempts, backoff_ms=BACKOFF * 1_000),
            )
        )
        name, outcome = self.model.put(key=key, lane=lane, priority=priority, delay=delay, max_attempts=max_attempts)
        if outcome == "created":
            self._know(put.job_id, name)
        assert (self.names[put.job_id], put.outcome) == (name, outcome)

    @precondition(lambda self: self.ids)
    @rule(one=INDEX)
    def cancel(self, one: int) -> None:
        name = self._some(one)
        self._same(
            lambda: self.model.cancel(name), self.world.queue.jobs.cancel(self.ids[name], reason="as the model says")
        )

    @precondition(lambda self: self.ids)
    @rule(move=st.sampled_from(["before", "after", "swap"]), one=INDEX, two=INDEX)
    def move(self, move: str, one: int, two: int) -> None:
        self.world.clock.advance(micros=10)
        self.moved = True
        name, other = self._some(one), self._some(two)
        real = getattr(self.world.queue.order, move)
        self._same(lambda: getattr(self.model, move)(name, other), real(self.ids[name], self.ids[other]))

    @precondition(lambda self: self.ids)
    @rule(one=INDEX)
    def to_front(self, one: int) -> None:
        self.moved = True
        name = self._some(one)
        self._same(lambda: self.model.to_front(name), self.world.queue.order.to_front(self.ids[name]))

    @precondition(lambda self: self.ids and not self.moved)
    @rule(one=INDEX, priority=st.integers(0, 2))
    def reprioritise(self, one: int, priority: int) -> None:
        """Before any move: then numbers are ages, and a job's place among those of another priority is plain."""
        name = self._some(one)
        self._same(
            lambda: self.model.reprioritise(name, priority),
            self.world.queue.order.reprioritise(self.ids[name], priority),
        )

    @rule(paused=st.booleans())
    def pause_or_open(self, paused: bool) -> None:
        pools = self.world.queue.pools
        self.model.paused = paused
        self.run((pools.pause if paused else pools.open)(POOL))

    # Workers.

    @rule(who=st.integers(0, 1), most=st.integers(1, 3), held=st.booleans())
    def claim(self, who: int, most: int, held: bool) -> None:
        wanted = Wanted(0, most) if held else Wanted(most)
        exchange = self.run(self.hands[who].exchange(wanted={POOL: wanted}))
        claimed = exchange.held if held else exchange.started
        names = self.model.claim(who, most, "claimed" if held else "running")
        assert [self.names[job.id] for job in claimed] == names
        self.claims |= {self.names[job.id]: job for job in claimed}

    @precondition(lambda self: self.model.having("running"))
    @rule(one=INDEX, succeeds=st.booleans())
    def report(self, one: int, succeeds: bool) -> None:
        name = self._one_of(self.model.having("running"), one)
        hand, job = self._claim(name)
        exchange = self.run((hand.finish if succeeds else hand.fail)(job))
        (self.model.finish if succeeds else self.model.fail)(name)
        assert list(exchange.stale) == []

    @precondition(lambda self: self.model.having("claimed"))
    @rule(one=INDEX)
    def start(self, one: int) -> None:
        name = self._one_of(self.model.having("claimed"), one)
        hand, job = self._claim(name, keep=True)
        exchange = self.run(hand.exchange(starting=[job]))
        self.model.start(name)
        assert [self.names[started.id] for started in exchange.started] == [name]
        self.claims[name] = exchange.started[0]

    @precondition(lambda self: self.model.having("claimed"))
    @rule(one=INDEX)
    def give_back(self, one: int) -> None:
        name = self._one_of(self.model.having("claimed"), one)
        hand, job = self._claim(name)
        self.run(self.world.queue.sessions.give_back(hand.session, [job]))
        self.model.give_back(name)
        self.lost.append((hand, job))

    @precondition(lambda self: self.ids)
    @rule(one=INDEX)
    def revoke(self, one: int) -> None:
        name = self._some(one)
        was_locked = name in self.model.having("claimed", "running")
        if was_locked:
            self.lost.append(self._claim(name))
        revoked = self.run(self.world.queue.sessions.revoke(self.ids[name], reason="as the model says"))
        assert revoked == self.model.revoke(name)

    @precondition(lambda self: self.lost)
    @rule(one=INDEX, succeeds=st.booleans())
    def report_a_lost_claim(self, one: int, succeeds: bool) -> None:
        hand, job = self.lost[one % len(self.lost)]
        exchange = self.run((hand.finish if succeeds else hand.fail)(job))
        assert list(exchange.stale) == [job.id]

    @rule(who=st.integers(0, 1))
    def lose_a_worker(self, who: int) -> None:
        """The other one beats on; nothing is staged, so only the rescue shows."""

        async def work() -> None:
            self.world.clock.advance(20)
            await self.world.queue.sessions.beat(self.hands[1 - who].session)
            self.world.clock.advance(10)
            rescues = await self.world.queue.sessions.rescue_expired()
            assert [rescue.session for rescue in rescues] == [self.hands[who].session]
            await self.world.queue.sessions.beat(self.hands[1 - who].session)
            self.hands[who] = await self.world.hand()

        for name in self.model.having("claimed", "running"):
            if self.model.live[name].session == who:
                self.lost.append(self._claim(name))
        self.run(work())
        self.model.advance(30)
        self.model.lose(who)

    @rule(seconds=st.sampled_from([0, 1, 1, 2, 5]))
    def let_time_pass(self, seconds: int) -> None:
        async def work() -> int | None:
            self.world.clock.advance(seconds)
            for hand in self.hands:
                await self.world.queue.sessions.beat(hand.session)
            due = await self.world.queue.jobs.stage()
            return due if due is None else due - self.world.clock.now()

        wait = self.run(work())
        self.model.advance(seconds)
        self.model.stage()
        due = self.model.next_due()
        assert (wait is None) == (due is None)
        if wait is not None and due is not None:
            assert round(wait / 1_000_000) == due - self.model.now

    # What must be the same.

    @invariant()
    def agrees(self) -> None:
        if self.hands:
            self.run(self._agree())

    async def _agree(self) -> None:
        await self._learn_of_retries()
        rows = await self.world.rows("SELECT id, state FROM jobs UNION ALL SELECT id, status FROM finished_jobs")
        assert {self.names[job_id]: state for job_id, state in rows} == self.model.states()
        upcoming = await self.world.queue.jobs.upcoming(POOL)
        assert [self.names[job.id] for job in upcoming] == self.model.upcoming()
        assert await self.world.used(POOL) == self.model.used()

    async def _learn_of_retries(self) -> None:
        rows = await self.world.rows("SELECT id, retry_of FROM jobs WHERE retry_of IS NOT NULL")
        for job_id, retry_of in rows:
            if job_id not in self.names:
                self._know(job_id, f"{self.names[retry_of]}'")

    def _same(self, expected: Callable[[], Any], real: Coroutine[Any, Any, Any]) -> None:
        try:
            answer: Any = expected()
        except Refusal as refusal:
            answer = str(refusal)
        try:
            answered = self.run(real)
        except DulyError as error:
            answered = error.code
        assert answered == answer

    def _know(self, job_id: str, name: str) -> None:
        self.ids[name] = JobId(job_id)
        self.names[job_id] = name

    def _claim(self, name: str, *, keep: bool = False) -> tuple[Hand, ClaimedJob]:
        session = self.model.live[name].session
        assert session is not None
        job = self.claims[name] if keep else self.claims.pop(name)
        return self.hands[session], job

    def _some(self, index: int) -> str:
        """Live ones most of the time."""
        names = [*self.model.live] * 3 + [*self.ids]
        return names[index % len(names)]

    def _one_of(self, names: list[str], index: int) -> str:
        return names[index % len(names)]

    def _instant(self, seconds: int) -> int:
        return self.world.clock.now() + (seconds - self.model.now) * 1_000_000


@pytest.mark.req("INV-004")
@pytest.mark.req("GRAPH-07")
@pytest.mark.req("GRAPH-09")
@pytest.mark.req("DEC-001")
@pytest.mark.req("RISK-02")
def test_the_queue_does_what_its_model_does(store: str, request: pytest.FixtureRequest) -> None:
    shared: SharedPostgres | None = request.getfixturevalue("shared_postgres") if store == "postgres" else None

    def machine() -> QueueAgainstModel:
        if shared is None:
            return QueueAgainstModel(store, ":memory:")
        shared.empty()
        return QueueAgainstModel(store, shared.url)

    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]  # any factory will do
        settings=settings(
            max_examples=(100 if store == "sqlite" else 12) * EFFORT,
            stateful_step_count=40,
            deadline=None,
            database=None,
            derandomize=EFFORT == 1,
            suppress_health_check=list(HealthCheck),
        ),
    )
