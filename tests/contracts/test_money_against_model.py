"""Any sequence of credits, holds, receipts, ends, lapses, repetitions and reopened stores, against plain dicts."""

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

from duly import every
from duly.application.money import Money
from duly.bootstrap import Queue
from duly.domain.errors import DulyError
from duly.domain.instants import SECOND, Micros
from duly.domain.schedules import Target
from tests.contracts.clocks import MORNING
from tests.contracts.forgetful import forgetful
from tests.contracts.laws import broken_laws
from tests.contracts.money_model import Key, MoneyModel, Refusal
from tests.contracts.purse import Purse
from tests.contracts.shared_postgres import SharedPostgres
from tests.contracts.world import World

EFFORT = int(os.environ.get("DULY_TEST_EFFORT", "1"))
LEASE_S = 100
LIMIT = 25
FIRST_CREDIT = 20
LEASE = Micros(LEASE_S * SECOND)
KEYS: list[Key] = [(run, attempt) for run in "abcd" for attempt in (1, 2)]
INDEX = st.integers(0, 10_000)
AMOUNTS = st.integers(0, 12)
# Of what is picked at random, this many times as much is there as is not.
FAVOUR = 5
# The model's first day begins with the second in which the world does.
SECONDS_INTO_THE_DAY = MORNING // SECOND % 86_400


class MoneyAgainstModel(RuleBasedStateMachine):
    """Few runs, attempts and units, so that calls meet what earlier ones left, in every order."""

    def __init__(self, store: str, place: str) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = World(store, place)
        self.model = MoneyModel(lease=LEASE_S, limit=LIMIT, now=SECONDS_INTO_THE_DAY)
        self.purse: Purse | None = None
        self.loses_answers = False

    @initialize()
    def open(self) -> None:
        async def work() -> Purse:
            await self.world.open()
            await self.world.queue.schedules.create(
                owner="ann", schedule_id="s", cadence=every("1h"), target=Target(kind="work")
            )
            await self.world.queue.budgets.set("schedule", "s", owner="ann", window="day", limit=LIMIT)
            return await Purse.with_(self.world, FIRST_CREDIT)

        self.purse = self.runner.run(work())
        self.model.credit("first", FIRST_CREDIT)
        for key in (("a", 1), ("b", 1), ("c", 1)):
            self._same(lambda key=key: self.model.hold(key, 5, "s"), self._hold(key, 5, "s"))  # type: ignore[misc]

    def teardown(self) -> None:
        try:
            if self.purse is not None:
                self.runner.run(self._passes_the_audit())
        finally:
            self.runner.run(self.world.close())
            self.runner.close()

    async def _passes_the_audit(self) -> None:
        await self._money.lapse_due()
        report = await self.world.queue.money_audit.report()
        assert report["totals"]["laws_hold"], report

    @rule(key=st.sampled_from(["k", "l", "m"]), amount=st.integers(1, 30))
    def credit(self, key: str, amount: int) -> None:
        self._same(lambda: self.model.credit(key, amount), self._credit(key, amount))

    @rule(key=st.sampled_from(KEYS), amount=AMOUNTS, schedule=st.sampled_from([None, "s"]))
    def hold(self, key: Key, amount: int, schedule: str | None) -> None:
        self._same(lambda: self.model.hold(key, amount, schedule), self._hold(key, amount, schedule))

    @precondition(lambda self: self.model.holds)
    @rule(one=INDEX, unit=st.sampled_from(["u", "v", "w"]), amount=st.none() | AMOUNTS)
    def receipt(self, one: int, unit: str, amount: int | None) -> None:
        key = self._some(one)
        self._same(lambda: self.model.receipt(key, unit, amount), self._receipt(key, unit, amount))

    @precondition(lambda self: self.model.holds)
    @rule(one=INDEX, verb=st.sampled_from(["settle", "settle", "release", "renew"]))
    def end_or_renew(self, one: int, verb: str) -> None:
        key, more = self._some(one), {"lease": LEASE} if verb == "renew" else {}
        self._same(lambda: getattr(self.model, verb)(key), self._state(getattr(self._money, verb)(*key, **more)))

    @precondition(lambda self: self.model.holds)
    @rule(one=INDEX, two=INDEX)
    def repeat(self, one: int, two: int) -> None:
        """As whoever was not answered would."""
        key, hold = [*self.model.holds.items()][one % len(self.model.holds)]
        asked = hold.amount, hold.schedule
        self._same(lambda: self.model.hold(key, *asked), self._hold(key, *asked))
        if self.model.receipts:
            (run, attempt, unit), amount = [*self.model.receipts.items()][two % len(self.model.receipts)]
            known = run, attempt
            self._same(lambda: self.model.receipt(known, unit, amount), self._receipt(known, unit, amount))

    @rule(seconds=st.sampled_from([1, 1, 50, 100, 30_000]))
    def let_time_pass(self, seconds: int) -> None:
        self.world.clock.advance(seconds)
        self.model.now += seconds
        lapsed = self.runner.run(self.world.queue.money.lapse_due())
        assert sorted((hold.run_id, hold.attempt) for hold in lapsed) == sorted(self.model.lapse())

    @rule(loses_answers=st.booleans())
    def crash(self, loses_answers: bool) -> None:
        """The process is gone, and memory with it; from now on works run again after their commit, or no longer."""
        self.loses_answers = loses_answers
        if self.world.place != ":memory:":
            self.runner.run(self.world.reopen())

    @invariant()
    def agrees(self) -> None:
        if self.purse is not None:
            self.runner.run(self._agree())

    async def _agree(self) -> None:
        accounts = await self.world.rows("SELECT granted, available, held, charged, overrun FROM billing_accounts")
        assert accounts == [self.model.figures()]
        holds = await self.world.rows("SELECT run_id, attempt, state, spent FROM holds")
        assert {(run, attempt): (state, spent) for run, attempt, state, spent in holds} == {
            key: (hold.state, self.model.spent(key)) for key, hold in self.model.holds.items()
        }
        (budget,) = await self.world.queue.budgets.list(owner="ann")
        assert budget.used == self.model.used_of_budget()
        assert await broken_laws(self.world.rows) == []

    @property
    def _queue(self) -> Queue:
        return forgetful(self.world) if self.loses_answers else self.world.queue

    @property
    def _money(self) -> Money:
        return self._queue.money

    @property
    def _account(self) -> str:
        assert self.purse is not None
        return self.purse.account.id

    async def _credit(self, key: str, amount: int) -> None:
        await self._queue.accounts.credit(self._account, amount=amount, key=key)

    async def _hold(self, key: Key, amount: int, schedule: str | None) -> str:
        hold = await self._money.hold(*key, account_id=self._account, amount=amount, schedule_id=schedule, lease=LEASE)
        return str(hold.state)

    async def _receipt(self, key: Key, unit: str, amount: int | None) -> Any:
        return (await self._money.receipt(*key, unit, amount=amount)).amount

    async def _state(self, asked: Coroutine[Any, Any, Any]) -> str:
        return str((await asked).state)

    def _some(self, index: int) -> Key:
        keys = [*self.model.holds] * FAVOUR + KEYS
        return keys[index % len(keys)]

    def _same(self, expected: Callable[[], Any], real: Coroutine[Any, Any, Any]) -> None:
        try:
            answer: Any = expected()
        except Refusal as refusal:
            answer = str(refusal)
        try:
            answered = self.runner.run(real)
        except DulyError as error:
            answered = error.code
        assert answered == answer


@pytest.mark.req("GRAPH-05")
@pytest.mark.req("OWN-03")
def test_money_does_what_its_model_does(store: str, request: pytest.FixtureRequest) -> None:
    shared: SharedPostgres | None = request.getfixturevalue("shared_postgres") if store == "postgres" else None

    def machine() -> MoneyAgainstModel:
        if shared is None:
            return MoneyAgainstModel(store, ":memory:")
        shared.empty()
        return MoneyAgainstModel(store, shared.url)

    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]  # any factory will do
        settings=settings(
            max_examples=(100 if store == "sqlite" else 12) * EFFORT,
            stateful_step_count=50,
            deadline=None,
            database=None,
            derandomize=EFFORT == 1,
            suppress_health_check=list(HealthCheck),
        ),
    )
