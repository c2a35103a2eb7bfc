"""The loop that keeps time: real storage in memory, under a clock that leaps from one event to the next."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from duly import Unavailable, every, once
from duly.application.openings import Opened
from duly.application.tally import Tally
from duly.application.timekeeping import Timekeeping
from duly.bootstrap import Queue, Settings
from duly.domain.ids import PoolName, ScheduleId, Token
from duly.domain.instants import SECOND, Instant, Micros, moment_of
from duly.domain.jobs import Entry
from duly.domain.policies import Policies
from duly.domain.runs import Gap, Run
from duly.domain.schedules import Target
from duly.domain.sessions import Wanted
from duly.ports.clock import Clock
from duly.ports.ledger import Agenda
from duly.ports.storage import Storage, Work
from duly.ports.wakeups import Wakeups
from duly.storage.sqlite.storage import SqliteStorage
from duly.system.dice import SystemDice
from duly.timekeeper.timekeeper import Timekeeper
from duly.timekeeper.timekeeper import _InThisLoop as InLoop
from tests.simulation.virtual_time import VirtualClock, VirtualLoop

pytestmark = pytest.mark.store("sqlite")

T = TypeVar("T")
START = 1_800_000_000
GREET = Target(kind="greet")


class MoodyStorage:
    """Counts what is asked of it; `mood` may delay a work, or refuse it."""

    def __init__(self, storage: Storage) -> None:
        self.inner = storage
        self.asked = Counter[str]()
        self.mood: Callable[[str], Awaitable[None]] = self._calm

    async def _calm(self, work: str) -> None:
        return None

    @property
    def clock(self) -> Clock:
        return self.inner.clock

    @property
    def wakeups(self) -> Wakeups:
        return self.inner.wakeups

    async def transact(self, work: Work[T], *, single: bool = False) -> T:
        await self._ask(work)
        return await self.inner.transact(work, single=single)

    def put_at_once(self, entry: Entry) -> None:
        """Everything is a transaction here."""

    async def read(self, work: Work[T]) -> T:
        await self._ask(work)
        return await self.inner.read(work)

    async def _ask(self, work: Work[Any]) -> None:
        name = getattr(work, "__qualname__", "").split(".")[1]
        self.asked[name] += 1
        await self.mood(name)

    async def close(self) -> None:
        await self.inner.close()


class Machine:
    """One process with a timekeeper at work."""

    def __init__(self, clock: VirtualClock, storage: MoodyStorage) -> None:
        self.clock = clock
        self.storage = storage
        self.queue = Queue.on(storage, SystemDice(), Settings(database_url=":memory:", max_catchup_per_tick=5))
        assert isinstance(self.queue.telemetry, Tally)
        self.tally = self.queue.telemetry
        self.keeper = self.queue.timekeeper()

    async def schedule(self, name: str = "s", cadence: Any = None, **policies: Any) -> None:
        cadence = cadence or every("1m")
        plan = {"owner": "ann", "cadence": cadence, "target": GREET, "policies": Policies(**policies)}
        await self.queue.schedules.create(schedule_id=name, **plan)

    async def until(self, seconds: float) -> None:
        await asyncio.sleep(seconds - (self.clock.now() / SECOND - START))

    async def runs(self, name: str = "s") -> list[Run]:
        return list(reversed(await self.queue.schedules.runs(name, owner=None, most=1_000)))

    async def gaps(self, name: str = "s") -> list[Gap]:
        return await self.storage.inner.transact(lambda tx: tx.ledger.gaps(ScheduleId(name)))


def keeping(scenario: Callable[[Machine], Coroutine[None, None, None]]) -> None:
    loop = VirtualLoop()
    clock = VirtualClock(loop)

    async def run() -> None:
        async with _machine(clock) as machine:
            await scenario(machine)

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()


@asynccontextmanager
async def _machine(clock: VirtualClock) -> AsyncIterator[Machine]:
    machine = Machine(clock, MoodyStorage(await SqliteStorage.open(":memory:", clock=clock, inline=True)))
    working = asyncio.create_task(machine.keeper.run())
    try:
        yield machine
        assert not working.done(), "the timekeeper fell over"
    finally:
        machine.keeper.stop()
        async with asyncio.timeout(100):
            await working
        await machine.storage.close()


def late(run: Run) -> float:
    return (run.opened_at - run.fire_at) / SECOND


@pytest.mark.req("FLOW-01")
def test_slots_open_at_their_instant_and_nothing_is_polled_in_between() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.schedule(overlap="allow")
        await machine.until(3_601)

        runs = await machine.runs()
        assert len(runs) == 60
        assert max(map(late, runs)) <= 0.001
        # Once with each beat, once after each slot: an idle second asks nothing.
        assert machine.storage.asked["_open"] <= 60 + 1
        assert machine.storage.asked["agenda"] <= 3_600 / 5 + 60 + 10

    keeping(scenario)


@pytest.mark.req("FLOW-01")
def test_a_new_schedule_wakes_the_timekeeper() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.until(1)
        await machine.schedule(cadence=once(moment_of(Instant((START + 2) * SECOND))))
        await machine.until(3)

        (run,) = await machine.runs()
        assert late(run) <= 0.001

    keeping(scenario)


def test_jitter_is_kept_to_the_microsecond_of_the_timer() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.schedule(overlap="allow", jitter_ms=20_000)
        await machine.until(600)

        runs = await machine.runs()
        assert len(runs) >= 9
        assert {run.fire_at for run in runs} != {run.scheduled_for for run in runs}
        assert max(map(late, runs)) <= 0.001

    keeping(scenario)


def test_a_clock_that_is_set_is_noticed_within_a_tick() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.schedule()
        await machine.until(10)
        machine.clock.set_off_by(50 * SECOND)
        await asyncio.sleep(1.1)

        (run,) = await machine.runs()
        assert run.scheduled_for == (START + 60) * SECOND

    keeping(scenario)


@pytest.mark.req("FLOW-01", error=True)
def test_what_is_in_another_timekeepers_hands_is_asked_for_again_without_hurry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    due = Instant(START * SECOND)

    async def stuck(self: Timekeeping) -> Agenda:
        return Agenda(due, None, None)

    async def scenario(machine: Machine) -> None:
        monkeypatch.setattr(Timekeeping, "agenda", stuck)
        await machine.until(10)

        assert 100 <= machine.storage.asked["_open"] <= 210

    keeping(scenario)


# Money


def test_money_that_nobody_holds_any_more_is_given_back_within_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.application.money.LAPSED_AT_ONCE", 2)

    async def scenario(machine: Machine) -> None:
        accounts, money = machine.queue.accounts, machine.queue.money
        account = (await accounts.create(owner="ann", name="main")).id
        await accounts.credit(account, amount=100, key="first")
        for run in ("a", "b", "c", "d", "kept"):
            lease = 3_600 * SECOND if run == "kept" else SECOND
            await money.hold(run, 1, account_id=account, amount=10, lease=Micros(lease))

        await machine.until(80)

        assert (await accounts.get(account, owner=None)).balance.held == 10
        before = machine.storage.asked["lapse_due"]
        await machine.until(80 + 600)
        assert 9 <= machine.storage.asked["lapse_due"] - before <= 11

    keeping(scenario)


def test_money_that_cannot_be_given_back_keeps_no_slot_from_being_opened() -> None:
    async def scenario(machine: Machine) -> None:
        async def broken(work: str) -> None:
            if work == "lapse_due":
                raise RuntimeError("no money today")

        machine.storage.mood = broken
        await machine.schedule(overlap="allow")
        await machine.until(185)

        assert len(await machine.runs()) == 3
        assert max(map(late, await machine.runs())) < 1
        assert machine.tally.failures > 3

    keeping(scenario)


# Outages


@pytest.mark.req("OWN-06")
@pytest.mark.parametrize(("seconds", "missed"), [(20, 0), (55, 0), (95, 2)])
def test_a_database_that_is_away_for_a_while_is_waited_for(seconds: int, missed: int) -> None:
    async def scenario(machine: Machine) -> None:
        async def away(work: str) -> None:
            raise Unavailable("the database is away")

        await machine.schedule(overlap="allow")
        await machine.until(50)
        machine.storage.mood = away
        await machine.until(50 + seconds)
        machine.storage.mood = machine.storage._calm
        await machine.until(240)

        assert sum(gap.count for gap in await machine.gaps()) == missed
        assert len(await machine.runs()) == 4 - missed
        assert machine.tally.failures > 3
        assert max(map(late, await machine.runs())) < seconds

    keeping(scenario)


@pytest.mark.req("OWN-06", error=True)
def test_slow_openings_do_not_look_like_an_outage() -> None:
    async def scenario(machine: Machine) -> None:
        async def slow(work: str) -> None:
            if work == "_open":
                await asyncio.sleep(130)

        await machine.schedule(overlap="allow")
        machine.storage.mood = slow
        await machine.until(400)

        assert await machine.gaps() == []
        assert len(await machine.runs()) >= 3

    keeping(scenario)


def test_a_machine_that_slept_has_missed_what_fired_meanwhile() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.schedule(overlap="allow")
        await machine.until(90)
        machine.clock.sleep_machine(600 * SECOND)
        await asyncio.sleep(1.1)

        assert [run.scheduled_for // SECOND - START for run in await machine.runs()] == [60]
        assert [gap.count for gap in await machine.gaps()] == [10]

    keeping(scenario)


# Chores


def test_live_slots_are_in_time_while_many_are_caught_up() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.schedule(cadence=every("10s"), overlap="allow", catch_up="fire_immediately")
        await machine.until(5)
        machine.clock.sleep_machine(900 * SECOND)
        await asyncio.sleep(40)

        runs = await machine.runs()
        live = [run for run in runs if run.scheduled_for > (START + 905) * SECOND]
        assert len(live) == 4
        assert max(map(late, live)) <= 0.001
        opened = Counter(run.opened_at // SECOND for run in runs if run not in live)
        assert sum(opened.values()) == 90
        assert max(opened.values()) <= 2 * 5

    keeping(scenario)


def test_a_chore_that_fails_does_not_keep_slots_from_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(self: Timekeeping) -> None:
        raise RuntimeError("a bug in catching up")

    async def scenario(machine: Machine) -> None:
        monkeypatch.setattr(Timekeeping, "catch_up", failing)
        await machine.schedule(cadence=every("10s"), overlap="allow", catch_up="spread")
        await machine.until(5)
        machine.clock.sleep_machine(900 * SECOND)
        await asyncio.sleep(40)

        runs = await machine.runs()
        assert len(runs) == 4
        assert max(map(late, runs)) <= 0.001
        assert 1 < machine.tally.failures < 15
        assert machine.tally.last_failure == "catch up: RuntimeError: a bug in catching up"

    keeping(scenario)


@pytest.mark.req("GRAPH-14")
def test_a_run_that_was_asked_to_stop_is_revoked_in_time() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.schedule(overlap="replace")
        session = await machine.queue.sessions.open(name="hand", lease=3600 * SECOND)  # type: ignore[arg-type]
        await machine.until(61)
        await machine.queue.sessions.exchange(session.id, token=Token(1), wanted={PoolName("default"): Wanted(1)})
        await machine.until(120 + 29)
        assert [str(run.status) for run in await machine.runs()] == ["running", "pending"]
        await machine.until(120 + 30.1)

        assert [str(run.status) for run in await machine.runs()] == ["cancelled", "pending"]

    keeping(scenario)


def test_a_timekeeper_that_is_told_to_stop_returns_at_once() -> None:
    async def scenario(machine: Machine) -> None:
        other = Timekeeper(machine.queue.timekeeping, telemetry=Tally())
        working = asyncio.create_task(other.run())
        await machine.until(7.3)

        other.stop()
        await asyncio.wait_for(working, 0.001)

    keeping(scenario)


def test_a_timekeeper_that_is_told_to_stop_has_kept_time_until_then() -> None:
    async def scenario(machine: Machine) -> None:
        other = Timekeeper(machine.queue.timekeeping, telemetry=Tally())
        working = asyncio.create_task(other.run())
        await machine.until(7.3)
        stopped_at = machine.clock.now()

        other.stop()
        await working

        (span,) = await machine.storage.inner.transact(lambda tx: tx.ledger.coverage(Instant(0)))
        assert span.end == stopped_at

    keeping(scenario)


def test_a_heart_that_finds_no_store_is_started_again() -> None:
    class Nowhere:
        tries = 0

        async def start(self, task: object) -> None:
            Nowhere.tries += 1
            if Nowhere.tries < 4:
                raise Unavailable("no store")

        async def stop(self) -> None:
            return None

    async def scenario(machine: Machine) -> None:
        other = Timekeeper(machine.queue.timekeeping, telemetry=Tally(), aside=Nowhere)
        working = asyncio.create_task(other.run())
        await asyncio.sleep(0.1)
        await machine.schedule()  # a hint must not make it hurry
        assert Nowhere.tries == 1
        await asyncio.sleep(5)
        other.stop()
        await working

        assert Nowhere.tries == 4

    keeping(scenario)


def test_a_timekeeper_that_is_cancelled_while_it_begins_leaves_no_heart_behind() -> None:
    class Slow:
        beating = False

        async def start(self, task: object) -> None:
            Slow.beating = True
            await asyncio.sleep(10)

        async def stop(self) -> None:
            Slow.beating = False

    async def scenario(machine: Machine) -> None:
        other = Timekeeper(machine.queue.timekeeping, telemetry=Tally(), aside=Slow)
        working = asyncio.create_task(other.run())
        await asyncio.sleep(1)
        assert Slow.beating

        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

        assert not Slow.beating

    keeping(scenario)


def test_revocations_and_catching_up_have_their_turn_while_slots_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    chores: list[str] = []

    async def open_due(self: Timekeeping) -> Opened:
        chores.append("open")
        if len(chores) > 10_000:
            raise Unavailable("nothing else was ever done")
        return Opened(schedules=500, more=True)

    async def revoke_due(self: Timekeeping) -> int:
        chores.append("revoke")
        return 0

    monkeypatch.setattr(Timekeeping, "open_due", open_due)
    monkeypatch.setattr(Timekeeping, "revoke_due", revoke_due)

    async def scenario(machine: Machine) -> None:
        await machine.queue.timekeeper().tick()

        assert chores[-1] == "revoke"

    keeping(scenario)


def test_coverage_is_one_span_while_a_timekeeper_is_alive() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.until(1_000)

        spans = await machine.storage.inner.transact(lambda tx: tx.ledger.coverage(Instant(0)))
        (span,) = spans
        assert timedelta(microseconds=span.end - span.start) >= timedelta(seconds=994)

    keeping(scenario)


class ServersClock(VirtualClock):
    """As on Postgres: looked at when it is asked to agree; set back, it makes time for leases wait."""

    _seen_off_by = 0
    _latest = 0

    def now(self) -> Instant:
        return Instant(super().now() - self._off_by + self._seen_off_by)

    def lease_now(self) -> Micros:
        self._latest = max(self._latest, self.now())
        return Micros(self._latest)

    async def agree(self) -> None:
        self._seen_off_by = self._off_by


class BesideClock(MoodyStorage):
    """What the heart has: the same database, and a clock of its own."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        super().__init__(storage)
        self._clock = clock

    @property
    def clock(self) -> Clock:
        return self._clock


@pytest.mark.req("OWN-06")
def test_a_servers_clock_that_was_set_back_and_right_again_is_followed_within_a_beat() -> None:
    loop = VirtualLoop()
    clocks = [ServersClock(loop), ServersClock(loop)]

    def set_off_by(error: int) -> None:
        for clock in clocks:
            clock.set_off_by(error)

    async def scenario() -> None:
        storage = MoodyStorage(await SqliteStorage.open(":memory:", clock=clocks[0], inline=True))
        machine = Machine(clocks[0], storage)
        beside = BesideClock(storage, clocks[1])
        machine.keeper = Timekeeper(machine.queue.timekeeping, telemetry=machine.tally, aside=lambda: InLoop(beside))
        working = asyncio.create_task(machine.keeper.run())
        await machine.schedule(cadence=every("1s"), overlap="allow")
        await asyncio.sleep(3.5)
        set_off_by(-3_600 * SECOND)
        await asyncio.sleep(20)
        set_off_by(0)
        await asyncio.sleep(10)

        runs = await machine.runs()
        assert [run.scheduled_for // SECOND - START for run in runs] == list(range(1, 34))
        assert max(map(late, runs)) <= 20 + 6
        assert not await machine.gaps()
        machine.keeper.stop()
        await working
        await storage.close()

    loop.run_until_complete(scenario())
    loop.close()
