"""The database's clock, kept locally: machines whose own clocks disagree still agree on what is due."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from duly.domain.errors import Unavailable
from duly.domain.instants import Instant, Micros
from duly.storage.postgres.connections import Connections
from duly.storage.statements import Statement
from duly.system.ticks import Ticks

_ROUNDS = 3

# The two counters are read one after the other, so they never differ by exactly the same amount twice.
_SUSPENDED = Micros(100_000)

_NOW = Statement(
    name="database_now",
    sql="SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    parameters=(),
)


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The database's time, and our ticks before asking and after hearing it."""

    before: Micros
    database_now: Instant
    after: Micros

    @property
    def offset(self) -> Micros:
        return Micros(self.database_now - (self.before + self.after) // 2)

    @property
    def error(self) -> Micros:
        return Micros((self.after - self.before + 1) // 2)


class PostgresClock:
    """Boot-time ticks plus an offset to the database's clock. Unmeasured, it answers nothing."""

    def __init__(self, ask: Callable[[], Awaitable[RoundTrip]], ticks: Ticks) -> None:
        self._ask = ask
        self._ticks = ticks
        self._offset: Micros | None = None
        self._slept = self._time_suspended()
        self._last_lease = Micros(0)

    @property
    def era(self) -> str:
        # The database's clock outlives every process, so its readings are all of one era.
        return "postgres"

    def now(self) -> Instant:
        if self._offset is None:
            raise RuntimeError("the clock was never measured against the database")
        return Instant(self._ticks.boottime() + self._offset)

    def lease_now(self) -> Micros:
        # Should the database's clock step back, leases stand still until it has caught up.
        self._last_lease = max(self._last_lease, Micros(self.now()))
        return self._last_lease

    async def agree(self) -> None:
        await self.measure()

    async def sleep(self, duration: Micros) -> None:
        await self._ticks.sleep(duration)
        if self.suspended:
            try:
                await self.measure()
            except Unavailable:
                # The boot-time counter went on counting, so the old offset is still a good one.
                return

    @property
    def suspended(self) -> bool:
        """Whether the machine slept since the last measurement."""
        return self._time_suspended() - self._slept > _SUSPENDED

    async def measure(self) -> None:
        """Call at each heartbeat: counters drift, and clocks are set."""
        slept = self._time_suspended()
        best = min([await self._ask() for _ in range(_ROUNDS)], key=lambda trip: trip.error)
        # An offset that this measurement cannot contradict stays, so that `now` does not jitter.
        if self._offset is None or abs(best.offset - self._offset) > best.error:
            self._offset = best.offset
        self._slept = slept

    def _time_suspended(self) -> Micros:
        return Micros(self._ticks.boottime() - self._ticks.awake())


async def ask_database(connections: Connections, ticks: Ticks) -> RoundTrip:
    connection = await connections.acquire()
    answered = False
    try:
        before = ticks.boottime()
        [(database_now,)] = await connection.fetch(_NOW, (), "reading")
        after = ticks.boottime()
        answered = True
    finally:
        connections.release(connection, discard=not answered)
    return RoundTrip(before, Instant(database_now), after)
