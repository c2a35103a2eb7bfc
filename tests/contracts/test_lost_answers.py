"""The server commits and the connection dies before its answer is read: what was done is found, not done again.

On SQLite the answer cannot be lost without the process.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from duly import every
from duly.domain.declarations import Declared
from duly.domain.ids import Owner, PoolName
from duly.domain.jobs import COMPLETED, PutOutcome
from duly.domain.requests import Claimed, Request
from duly.domain.runs import RunStatus
from duly.domain.schedules import Target
from duly.domain.sessions import Report, Wanted
from tests.contracts.keeping import Keeping
from tests.contracts.plans import launched, planned, row_of
from tests.contracts.shared_postgres import SharedPostgres
from tests.contracts.world import FAILED, WIDE, World
from tests.tcp_proxy import TcpProxy

pytestmark = pytest.mark.store("postgres")

COMMIT = b"COMMIT\0"  # the whole message: a BEGIN says READ COMMITTED


@asynccontextmanager
async def _behind_a_proxy(shared: SharedPostgres) -> AsyncIterator[tuple[World, TcpProxy]]:
    async with TcpProxy(shared.url) as proxy:
        world = World("postgres", proxy.url)
        await world.open()
        try:
            yield world, proxy
            assert proxy.cuts == 1, "nothing was lost"
            await world.keeps_the_laws()
        finally:
            await world.close()


@pytest.fixture
def empty_postgres(shared_postgres: SharedPostgres) -> SharedPostgres:
    shared_postgres.empty()
    return shared_postgres


@pytest.mark.req("INV-003")
async def test_a_claim_whose_answer_was_lost_is_found(empty_postgres: SharedPostgres) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        for n in range(3):
            await world.put(f"n{n}")
        hand = await world.hand(1)

        proxy.cut_once("after", hand.session.encode())
        claimed = await hand.claim(1)

        assert [job.kind for job in claimed] == ["n0"]
        assert await world.rows("SELECT kind FROM jobs WHERE state = 'running'") == [("n0",)]


async def test_a_claim_that_never_arrived_is_made(empty_postgres: SharedPostgres) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        await world.put("a")
        hand = await world.hand(1)

        proxy.cut_once("before", hand.session.encode())

        assert [job.kind for job in await hand.claim(1)] == ["a"]


@pytest.mark.req("CON-002")
@pytest.mark.parametrize("full", [False, True])
async def test_no_job_is_entered_twice_when_the_answer_to_its_start_was_lost(
    empty_postgres: SharedPostgres, full: bool
) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        await world.pool("gpu", 0 if full else 5)
        await world.put("plain")
        await world.put("needing", resources=["gpu"])
        await world.put("next")
        hand = await world.hand(2)

        proxy.cut_once("after", COMMIT)
        claimed = await hand.claim(2)

        assert [job.kind for job in claimed] == ["plain", "next" if full else "needing"]
        assert await world.used(PoolName("gpu")) == (0 if full else 1)


@pytest.mark.parametrize("ending", [COMPLETED, FAILED])
async def test_an_exchange_whose_answer_was_lost_is_found(empty_postgres: SharedPostgres, ending: object) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        await world.put("first")
        await world.put("second")
        await world.put("third")
        hand = await world.hand(1)
        (job,) = await hand.claim(1)
        (held,) = await hand.hold(1)

        proxy.cut_once("after", COMMIT)
        exchange = await hand.exchange(
            reports=[Report(job, FAILED if ending is FAILED else COMPLETED)],
            starting=[held],
            wanted={WIDE: Wanted(0, 1)},
        )

        assert [started.kind for started in exchange.started] == ["second"]
        assert [later.kind for later in exchange.held] == ["third"]
        assert list(exchange.stale) == []
        assert len(await world.queue.jobs.chain(job.id)) == (2 if ending is FAILED else 1)


@pytest.mark.req("GRAPH-07")
@pytest.mark.parametrize("key", [None, "k"])
async def test_a_put_whose_answer_was_lost_made_one_job(empty_postgres: SharedPostgres, key: str | None) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        proxy.cut_once("after", b"work-to-lose")
        put = await world.puts("work-to-lose", key=key)

        assert put.outcome is PutOutcome.CREATED
        assert await world.rows("SELECT id FROM jobs") == [(put.job_id,)]


@pytest.mark.req("CRON-01")
async def test_a_schedule_whose_creation_was_not_answered_is_found_as_ones_own(empty_postgres: SharedPostgres) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        proxy.cut_once("after", COMMIT)

        made = await planned(world)

        assert await world.transact(lambda tx: tx.schedules.revisions(made.id)) == [made.recorded()]


@pytest.mark.req("GRAPH-19")
async def test_a_run_whose_claim_was_not_answered_is_counted_once(empty_postgres: SharedPostgres) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        await planned(world)
        await launched(world)
        hand = await world.hand(1)

        proxy.cut_once("after", hand.session.encode())
        (job,) = await hand.claim()
        await hand.finish(job)

        row = await row_of(world)
        assert (row.status, row.attempt_count) == ("success", 1)


# Slots and schedules


@pytest.mark.req("GRAPH-08", error=True)
@pytest.mark.req("CRON-06")
@pytest.mark.parametrize("where", ["before", "after"])
async def test_an_opening_whose_answer_was_lost_is_not_made_twice(
    empty_postgres: SharedPostgres, where: Literal["before", "after"]
) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        keeping = Keeping(world)
        await keeping.schedule(overlap="allow")
        await keeping.alive_until(3)

        proxy.cut_once(where, COMMIT)
        await keeping.tick()

        assert await keeping.fates() == ["1: pending", "2: pending", "3: pending"]
        assert await world.rows("SELECT count(*) FROM jobs") == [(3,)]
        await keeping.accounts_for_every_slot()


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_catch_up_whose_answer_was_lost_is_not_made_twice(
    empty_postgres: SharedPostgres, where: Literal["before", "after"]
) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        keeping = Keeping(world)
        await keeping.schedule(overlap="queue", catch_up="fire_immediately")
        await keeping.outage_until(4.5)
        await world.queue.timekeeping.open_due()

        proxy.cut_once(where, COMMIT)
        await world.queue.timekeeping.catch_up()

        assert await keeping.fates() == [f"{minute}: pending" for minute in (1, 2, 3, 4)]
        await keeping.accounts_for_every_slot()


@pytest.mark.parametrize("change", ["edit", "pause", "delete"])
async def test_a_change_whose_answer_was_lost_is_one_revision(empty_postgres: SharedPostgres, change: str) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        keeping = Keeping(world)
        await keeping.schedule(overlap="allow")
        await keeping.alive_until(1)
        given = {"cadence": every("2m")} if change == "edit" else {}

        proxy.cut_once("after", COMMIT)
        changed = await getattr(keeping.schedules, change)("s", owner="ann", expected_revision=1, **given)

        assert changed.revision == 2
        assert [revision.number for revision in await keeping.schedules.revisions("s", owner="ann")] == [1, 2]
        assert await keeping.fates() == ["1: pending"]


@pytest.mark.parametrize("earlier", ["nothing", "tombstone", "other"])
async def test_a_schedule_whose_definition_was_not_answered_is_defined_once(
    empty_postgres: SharedPostgres, earlier: str
) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        keeping = Keeping(world)
        if earlier != "nothing":
            await keeping.schedule()
        if earlier == "tombstone":
            await keeping.schedules.delete("s", owner="ann")
        world.clock.advance(1)

        proxy.cut_once("after", COMMIT)
        if earlier == "other":
            target = Target(kind="s", pool=WIDE)
            made = await keeping.schedules.upsert("s", owner="ann", cadence=every("2m"), target=target)
        else:
            made = await keeping.schedule(cadence=every("2m"))

        assert made.revision == {"nothing": 1, "other": 2, "tombstone": 3}[earlier]
        assert len(await keeping.schedules.revisions("s", owner="ann")) == made.revision


@pytest.mark.parametrize("key", [None, "once"])
async def test_runs_that_were_asked_for_and_not_answered_are_there_once(
    empty_postgres: SharedPostgres, key: str | None
) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        keeping = Keeping(world)
        await keeping.schedule()

        proxy.cut_once("after", COMMIT)
        run = await keeping.schedules.run_now("s", owner="ann", key=key)

        assert [row.id for row in await keeping.runs()] == [run.id]
        assert await world.rows("SELECT id FROM jobs") == [(run.job_id,)]


async def test_a_claimed_request_whose_answer_was_lost_is_ours(empty_postgres: SharedPostgres) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        request = Request(owner=Owner("ann"), route="POST /runs", key="k", hash="h")
        first = await world.queue.requests.claim(request)
        assert isinstance(first, Claimed)
        await world.queue.requests.abandon(request, first)

        proxy.cut_once("after", COMMIT)
        second = await world.queue.requests.claim(request)

        assert isinstance(second, Claimed)
        assert second.draw == first.draw
        assert await world.rows("SELECT token FROM idempotency_keys") == [(second.token,)]


async def test_a_cancelled_run_whose_answer_was_lost_is_cancelled_not_refused(empty_postgres: SharedPostgres) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        await Keeping(world).schedule()
        run = await world.queue.schedules.run_now("s", owner="ann")

        proxy.cut_once("after", COMMIT)
        ended = await world.queue.runs.cancel(run.id, owner="ann", reason="not today")

        assert (ended.status, ended.detail) == (RunStatus.CANCELLED, "not today")


async def test_a_declared_schedule_whose_answer_was_lost_is_made_once(empty_postgres: SharedPostgres) -> None:
    async with _behind_a_proxy(empty_postgres) as (world, proxy):
        declared = Declared(id="s", cadence=every("1m"), target=Target(kind="s", pool=WIDE))

        proxy.cut_once("after", COMMIT)
        await world.queue.declarations.reconcile("letters", [declared], owner="ann")

        assert await world.rows("SELECT revision, state FROM schedules") == [(1, "active")]
        assert await world.rows("SELECT schedule_id FROM declared_schedules") == [("s",)]
