"""Machines whose clocks disagree agree on the database's time."""

import asyncio
from collections.abc import Callable

import pytest

from duly.domain.errors import Unavailable
from duly.domain.instants import SECOND, Instant, Micros
from duly.storage.postgres.clock import PostgresClock, RoundTrip
from duly.system.ticks import SystemTicks
from tests.adapters.postgres.notes import connected, opened


class SkewedTicks(SystemTicks):
    """A machine that started at another time, as every other machine did."""

    __slots__ = ("_skew",)

    def __init__(self, skew: int) -> None:
        self._skew = skew

    def boottime(self) -> Micros:
        return Micros(super().boottime() + self._skew)


class HandTicks:
    """Counters moved by hand."""

    def __init__(self) -> None:
        self.boot = 1_000_000
        self.suspended_for = 0

    def boottime(self) -> Micros:
        return Micros(self.boot)

    def awake(self) -> Micros:
        return Micros(self.boot - self.suspended_for)

    async def sleep(self, duration: Micros) -> None:
        self.boot += duration


def _answers(ticks: HandTicks, *database: tuple[int, int]) -> Callable[[], "asyncio.Future[RoundTrip]"]:
    """Each answer: how far the database is ahead of our ticks, and how long the round trip took."""
    left = list(database)

    def ask() -> "asyncio.Future[RoundTrip]":
        ahead, took = left.pop(0) if len(left) > 1 else left[0]
        before = ticks.boot
        ticks.boot += took
        future: asyncio.Future[RoundTrip] = asyncio.get_running_loop().create_future()
        future.set_result(RoundTrip(Micros(before), Instant(before + took // 2 + ahead), Micros(ticks.boot)))
        return future

    return ask


def test_skewed_machines_agree_with_the_database(fresh_postgres_url: str) -> None:
    async def scenario() -> tuple[int, int]:
        async with (
            opened(fresh_postgres_url, ticks=SkewedTicks(300 * SECOND)) as ahead,
            opened(fresh_postgres_url, ticks=SkewedTicks(-3_600 * SECOND)) as behind,
            connected(fresh_postgres_url) as witness,
        ):
            before = ahead.clock.now()
            now = await witness.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
            after = ahead.clock.now()
            apart = abs(ahead.clock.now() - behind.clock.now())
            off = max(before - now, now - after, 0)
            return apart, off

    apart, off = asyncio.run(scenario())
    assert apart < 50_000
    assert off < 50_000


def test_the_quickest_of_three_answers_counts() -> None:
    async def scenario() -> int:
        ticks = HandTicks()
        clock = PostgresClock(_answers(ticks, (900_000, 200_000), (500_000, 100), (100_000, 300_000)), ticks)
        await clock.measure()
        return clock.now() - ticks.boot

    assert asyncio.run(scenario()) == 500_000


def test_a_measurement_that_cannot_contradict_the_offset_leaves_it() -> None:
    async def scenario() -> list[int]:
        ticks = HandTicks()
        answers = [(500_000, 100)] * 3 + [(500_400, 1_000)] * 3 + [(500_600, 1_000)] * 3
        clock = PostgresClock(_answers(ticks, *answers), ticks)
        offsets = []
        for _ in range(3):
            await clock.measure()
            offsets.append(clock.now() - ticks.boot)
        return offsets

    assert asyncio.run(scenario()) == [500_000, 500_000, 500_600]


def test_when_the_database_steps_back_now_follows_and_leases_stand_still() -> None:
    async def scenario() -> None:
        ticks = HandTicks()
        clock = PostgresClock(_answers(ticks, *[(SECOND * 60, 100)] * 3, (0, 100)), ticks)
        await clock.measure()
        now, lease = clock.now(), clock.lease_now()

        await clock.measure()

        assert clock.now() < now
        assert clock.lease_now() == lease
        ticks.boot += 61 * SECOND
        assert clock.lease_now() == Micros(clock.now()) > lease

    asyncio.run(scenario())


def test_after_a_suspension_the_offset_is_measured_anew() -> None:
    async def scenario() -> None:
        ticks = HandTicks()
        clock = PostgresClock(_answers(ticks, *[(0, 100)] * 3, (SECOND * 2, 100)), ticks)
        await clock.measure()
        await clock.sleep(SECOND)
        assert clock.now() == ticks.boot

        ticks.boot += 3_600 * SECOND
        ticks.suspended_for += 3_600 * SECOND
        assert clock.suspended
        await clock.sleep(SECOND)

        assert not clock.suspended
        assert clock.now() == ticks.boot + 2 * SECOND

    asyncio.run(scenario())


def test_sleep_returns_even_when_the_database_is_away() -> None:
    async def away() -> RoundTrip:
        raise Unavailable("gone")

    async def scenario() -> None:
        ticks = HandTicks()
        clock = PostgresClock(away, ticks)
        ticks.boot += 10 * SECOND
        ticks.suspended_for += 10 * SECOND
        await clock.sleep(SECOND)
        with pytest.raises(RuntimeError, match="never measured"):
            clock.now()

    asyncio.run(scenario())


def test_the_systems_ticks_move_forward() -> None:
    ticks = SystemTicks()
    awake, first = ticks.awake(), ticks.boottime()
    assert ticks.boottime() >= first >= awake > 0
