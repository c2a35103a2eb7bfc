"""Each guard of the money law, taken away: the law must be seen to break, or nobody would notice that it is gone."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from duly import every
from duly.bootstrap import Queue
from duly.domain.billing import Hold, MoneyLaw
from duly.domain.schedules import Target
from duly.storage.errors import ConstraintViolated
from duly.storage.postgres.storage import PostgresStorage
from duly.storage.sqlite.storage import SqliteStorage
from duly.storage.statements import load_statements
from tests.contracts.points import stop_after
from tests.contracts.purse import Purse
from tests.contracts.world import World

UNCHECKED = {
    "sqlite": """
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(replace(replace(sql,
          'CHECK (granted = available + held + charged)', 'CHECK (1)'),
          'CHECK (available >= 0 AND held >= 0 AND overrun >= 0)', 'CHECK (1)'),
          'CHECK (available = 0 OR overrun = 0)', 'CHECK (1)') WHERE name = 'billing_accounts';
        PRAGMA writable_schema = RESET""",
    "postgres": """
        ALTER TABLE billing_accounts DROP CONSTRAINT billing_accounts_add_up;
        ALTER TABLE billing_accounts DROP CONSTRAINT billing_accounts_not_overdrawn;
        ALTER TABLE billing_accounts DROP CONSTRAINT billing_accounts_pay_their_overrun""",
}


class Scratch(World):
    """A database of its own, whose schema may be broken."""

    async def _opened(self) -> Any:
        if self.store == "sqlite":
            return await SqliteStorage.open(self.place, clock=self.clock)
        return await PostgresStorage.open(self.place, listening=False)

    async def run(self, sql: str) -> None:
        for statement in sql.split(";"):
            if self._witness is not None:
                await self._witness.execute(statement)
            else:
                await self.rows(statement)


@pytest.fixture
def scratch(store: str, request: pytest.FixtureRequest, tmp_path: Any) -> Scratch:
    place = str(tmp_path / "duly.db") if store == "sqlite" else str(request.getfixturevalue("fresh_postgres_url"))
    return Scratch(store, place)


@asynccontextmanager
async def _opened(scratch: Scratch) -> AsyncIterator[Scratch]:
    await scratch.open()
    try:
        await scratch.rows("SELECT 1")
        yield scratch
    finally:
        await scratch.close()


@contextmanager
def _without(store: str, name: str, text: str, instead: str = "") -> Iterator[None]:
    """A statement with a piece of its text taken out."""
    statements = load_statements(store)
    whole = statements[name]
    broken = replace(whole, sql=whole.sql.replace(text, instead))
    assert broken.sql != whole.sql, "there is nothing to take out"
    statements[name] = broken
    try:
        yield
    finally:
        statements[name] = whole


async def _hundred_holds_on_a_balance_for_one(scratch: Scratch) -> int:
    purse = await Purse.with_(scratch, 10)
    queues = [scratch.queue, *[await scratch.another() for _ in range(3)]]
    asked = [purse.hold(10, f"run {n}", queue=queues[n % 4]) for n in range(100)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    return sum(isinstance(outcome, Hold) for outcome in outcomes)


async def _laws(queue: Queue) -> set[str]:
    return set((await queue.money_audit.report())["totals"]["found"])


def _condition(store: str) -> str:
    return "AND available >= ?1" if store == "sqlite" else "AND available >= $1"


def test_with_every_guard_in_place_one_passes(scratch: Scratch) -> None:
    async def work() -> None:
        async with _opened(scratch):
            assert await _hundred_holds_on_a_balance_for_one(scratch) == 1
            assert await _laws(scratch.queue) == set()

    asyncio.run(work())


def test_without_the_condition_the_schema_still_refuses(scratch: Scratch) -> None:
    async def work() -> None:
        async with _opened(scratch):
            purse = await Purse.with_(scratch, 10)
            await purse.hold(10, "one")
            with pytest.raises(ConstraintViolated):
                await purse.hold(10, "two")
            assert await purse.shown() == "0+10+0"

    with _without(scratch.store, "reserve_money", _condition(scratch.store)):
        asyncio.run(work())


def test_without_condition_and_schema_all_pass_and_the_audit_sees_it(scratch: Scratch) -> None:
    async def work() -> None:
        async with _opened(scratch):
            await scratch.run(UNCHECKED[scratch.store])
            assert await _hundred_holds_on_a_balance_for_one(scratch) == 100
            assert await _laws(scratch.queue) == {MoneyLaw.NEGATIVE, MoneyLaw.UNBALANCED}

    with _without(scratch.store, "reserve_money", _condition(scratch.store)):
        asyncio.run(work())


def test_without_the_first_end_standing_a_hold_is_given_back_twice(scratch: Scratch) -> None:
    async def work() -> None:
        async with _opened(scratch):
            await scratch.run(UNCHECKED[scratch.store])
            purse = await Purse.with_(scratch, 10)
            await purse.hold(6)
            await purse.release()
            await purse.release()
            assert await purse.shown() == "16+-6+0"
            assert await _laws(scratch.queue) == {MoneyLaw.NEGATIVE, MoneyLaw.UNBALANCED}

    with _without(scratch.store, "end_hold", " AND state = 'held'"):
        asyncio.run(work())


def test_without_its_index_a_unit_is_charged_twice(scratch: Scratch) -> None:
    async def work() -> None:
        async with _opened(scratch):
            await scratch.run("DROP INDEX charge_receipts_once")
            purse = await Purse.with_(scratch, 10)
            await purse.hold(6)
            await purse.spend(2)
            await purse.spend(2)
            await purse.settle()
            assert await purse.shown() == "6+0+4"
            assert await _laws(scratch.queue) == {MoneyLaw.DOUBLED}

    with _without(scratch.store, "insert_receipt", "ON CONFLICT (source_reference) DO NOTHING"):
        asyncio.run(work())


@pytest.mark.store("postgres")
def test_without_its_lock_on_holds_a_new_budget_forgets_one(fresh_postgres_url: str) -> None:
    """Only on Postgres can anything happen between two statements of others."""
    scratch = Scratch("postgres", fresh_postgres_url)

    async def work() -> None:
        async with _opened(scratch):
            purse = await Purse.with_(scratch, 10)
            await scratch.queue.schedules.create(
                owner="ann", schedule_id="s", cadence=every("1h"), target=Target(kind="work")
            )
            with stop_after("budgets_covering") as point:
                holding = asyncio.create_task(purse.hold(7, schedule="s"))
                await point.reached.wait()
                budget = await scratch.queue.budgets.set("schedule", "s", owner="ann", window="day", limit=9)
                point.go.set()
                await holding
            assert budget.used == 0
            assert await _laws(scratch.queue) == {MoneyLaw.MISCOUNTED}

    with _without("postgres", "stop_holds", "LOCK TABLE holds IN SHARE MODE", "SELECT 1"):
        asyncio.run(work())
