"""The database's clock, kept locally: machines whose own clocks disagree still agree on what is due."""

from duly.domain.errors import Unavailable
from duly.domain.instants import Instant, Micros
from duly.storage.postgres.connections import Connections
from duly.storage.statements import Statement
from duly.system.ticks import SystemTicks, Ticks

_ROUNDS = 3

# Less than this between the two counters is a reading taken between two reads of the same moment.
_SUSPENDED = Micros(100_000)

_NOW = Statement(
    name="database_now",
    sql="SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    parameters=(),
)


class PostgresClock:
    """Boot-time ticks plus an offset to the database's clock. Unmeasured, it answers nothing."""

    def __init__(self, connections: Connections, *, ticks: Ticks | None = None) -> None:
        self._connections = connections
        self._ticks = ticks or SystemTicks()
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
        offset, error = min([await self._measured() for _ in range(_ROUNDS)], key=lambda found: found[1])
        # An offset that this measurement cannot contradict stays, so that `now` does not jitter.
        if self._offset is None or abs(offset - self._offset) > error:
            self._offset = offset
        self._slept = slept

    async def _measured(self) -> tuple[Micros, Micros]:
        """The offset at the middle of a round trip, and by how much it may be wrong."""
        connection = await self._connections.acquire()
        try:
            before = self._ticks.boottime()
            [(database_now,)] = await connection.fetch(_NOW, (), "reading")
            after = self._ticks.boottime()
        except BaseException:
            self._connections.release(connection, discard=True)
            raise
        self._connections.release(connection)
        return Micros(database_now - (before + after) // 2), Micros((after - before + 1) // 2)

    def _time_suspended(self) -> Micros:
        return Micros(self._ticks.boottime() - self._ticks.awake())
