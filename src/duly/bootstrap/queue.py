"""The use cases and the processes that do them, on one store."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar, cast

from duly.application.attempts import AttemptPace
from duly.application.deliveries import Deliveries
from duly.application.directs import Directs
from duly.application.executions import Executions
from duly.application.jobs import Jobs
from duly.application.telling import Everybody
from duly.bootstrap.graphs import executions_on, graph_runs_on
from duly.bootstrap.stores import is_postgres, open_storage, reading, require_database, storage_opener
from duly.bootstrap.use_cases import WiredUseCases
from duly.courier.courier import Courier
from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName
from duly.domain.instants import Micros
from duly.domain.webhooks.deliveries import DEFAULT_PACE, DeliveryPace
from duly.domain.webhooks.events import Ended
from duly.graphs.registry import Registry
from duly.ports.storage import ReadOnlyStorage, Storage
from duly.ports.telemetry import Telemetry
from duly.settings import Settings
from duly.system.dice import SystemDice
from duly.timekeeper.timekeeper import Timekeeper
from duly.worker.direct_calls import DirectCalls
from duly.worker.handlers import Handler
from duly.worker.pulse import OwnThread, ThreadPulse
from duly.worker.worker import PATIENCE, Worker

if TYPE_CHECKING:
    from duly.courier.sender import HttpSender
    from duly.system.telemetry import Telemetry as Meter
    from duly.worker.graph_runs import GraphRuns

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Queue(WiredUseCases):
    """The durable queue on one store: its use cases, and the processes that do them."""

    @classmethod
    async def observed(cls, settings: Settings, *listeners: Telemetry) -> Self:
        """One whose facts are logged and counted for metrics, and told to those listeners, too."""
        meter = _new_meter()
        queue = await cls.open(settings, Everybody(meter, *listeners))
        return replace(queue, meter=meter)

    @classmethod
    async def open(cls, settings: Settings, telemetry: Telemetry | None = None) -> Self:
        return cls.on(await open_storage(settings), SystemDice(), settings, telemetry)

    def within(self, connection: object) -> Jobs:
        """Puts in the transaction of a caller's own Postgres connection: committed with it, and gone with it."""
        if not is_postgres(self.settings.database_url):
            raise InvalidInput(
                "connection",
                "the database is SQLite, whose one writer takes part in nobody's transaction",
                fix="put without it, or use Postgres",
            )
        from duly.storage.postgres.callers import CallersStorage
        from duly.storage.postgres.storage import PostgresStorage

        return replace(self.jobs, storage=CallersStorage(cast("PostgresStorage", self.storage), connection))

    def worker(
        self,
        *,
        handlers: Mapping[str, Handler],
        pools: Mapping[PoolName, int],
        name: str,
        prefetch: Mapping[PoolName, int] | None = None,
        grace: Micros | None = None,
        patience: Micros = PATIENCE,
    ) -> Worker:
        """A worker whose heart beats in a thread with a connection of its own; memory has only one."""
        return Worker(
            jobs=self.jobs,
            sessions=self.sessions,
            handlers=handlers,
            pools=pools,
            prefetch=prefetch,
            name=name,
            lease=self.settings.lease,
            grace=self.settings.grace if grace is None else grace,
            patience=patience,
            pulse=None if self._is_in_memory else self._pulse,
            telemetry=self.telemetry,
        )

    def direct_calls(
        self, *, handlers: Callable[[], Mapping[str, Handler]], name: str, patience: Micros = PATIENCE
    ) -> DirectCalls:
        """Direct calls that this process runs itself; to be closed before the queue is."""
        return DirectCalls(
            directs=Directs(self.storage, self.dice),
            sessions=self.sessions,
            handlers=handlers,
            name=name,
            lease=self.settings.lease,
            patience=patience,
            pulse=None if self._is_in_memory else self._pulse,
        )

    def executions(self, graphs: Registry, *, pace: AttemptPace | None = None) -> Executions:
        """The execution service for these graphs; what runs them is loaded when it first runs."""
        return executions_on(self, graphs, pace=pace)

    def graph_runs(self, graphs: Registry, *, pace: AttemptPace | None = None) -> "GraphRuns":
        """The handler of `graph.run`: asks the execution service that the settings name, or one in this process."""
        return graph_runs_on(self, graphs, pace=pace)

    def timekeeper(self) -> Timekeeper:
        """A timekeeper whose heart beats in a thread with a connection of its own; memory has only one."""
        return Timekeeper(
            self.timekeeping,
            telemetry=self.telemetry,
            aside=None if self._is_in_memory else self._own_thread,
            lapse=self.money.lapse_some,
            expire=self.reviews.expire_some,
            beside=[self.courier()],
        )

    def courier(self, pace: DeliveryPace = DEFAULT_PACE) -> Courier:
        """Delivers webhooks; one runs beside every timekeeper."""

        def sender() -> "HttpSender":
            # An HTTP client takes a tenth of a second to load.
            from duly.courier.sender import HttpSender

            return HttpSender(clock=self.storage.clock, rule=self.settings.addresses, pace=pace)

        return Courier(Deliveries(self.storage, self.dice, _worded, pace), sender, telemetry=self.telemetry)

    def trace_url(self, trace_id: str | None) -> str | None:
        """Where the tracing backend shows it, if the settings say where that is."""
        template = self.settings.trace_url
        return None if template is None or trace_id is None else template.replace("{trace_id}", trace_id)

    async def metrics(self) -> bytes:
        """What this process counted, if it is observed, and what the store holds, in Prometheus' text format."""
        meter = self.meter or _new_meter()
        return meter.metrics(await self.health.census(), now=self.storage.clock.now())

    @property
    def _is_in_memory(self) -> bool:
        return self.settings.database_url == ":memory:"

    def _pulse(self) -> ThreadPulse:
        return ThreadPulse(storage_opener(self.settings), self.dice)

    def _own_thread(self) -> OwnThread:
        return OwnThread(storage_opener(self.settings))

    async def close(self) -> None:
        await self.storage.close()


async def looking(settings: Settings, look: Callable[[Queue], Awaitable[T]]) -> T:
    """The use cases on a database that is left as it is: those that look work, those that change cannot."""

    async def on(storage: ReadOnlyStorage) -> T:
        return await look(Queue.on(cast("Storage", storage), SystemDice(), settings))

    return await reading(settings, on)


async def changing(settings: Settings, change: Callable[[Queue], Awaitable[T]], *, creates: bool) -> T:
    """The use cases on a database that is brought up to date; unless `creates`, it must be there."""
    if not creates:
        require_database(settings, "change")
    queue = await Queue.open(settings)
    try:
        return await change(queue)
    finally:
        await queue.close()


def _worded(ended: Ended) -> tuple[str, str]:
    """Shapes are imported where something is told: most programs tell nobody."""
    from duly.wire.webhooks import worded

    return worded(ended)


def _new_meter() -> "Meter":
    """Imported where it is made: who only looks something up need not wait for it."""
    from duly.system.telemetry import Telemetry as Meter

    return Meter()
