"""The use cases and the processes that do them, on one store."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Self, TypeVar, cast

from duly.application.accounts import Accounts
from duly.application.attempts import AttemptPace
from duly.application.audit import Audit
from duly.application.budgets import Budgets
from duly.application.checkpoints import Checkpoints
from duly.application.dag_runs import DagRuns
from duly.application.declarations import Declarations
from duly.application.deliveries import Deliveries
from duly.application.directs import Directs
from duly.application.execution_events import ExecutionEvents
from duly.application.executions import Executions
from duly.application.governance import Governance
from duly.application.grants import Grants
from duly.application.graph_grants import GraphGrants
from duly.application.groups import Groups
from duly.application.health import Health
from duly.application.jobs import Jobs
from duly.application.launches import Launches
from duly.application.logs import Logs
from duly.application.money import Money
from duly.application.money_audit import MoneyAudit
from duly.application.order import Order
from duly.application.places import Places
from duly.application.pools import Pools
from duly.application.registrar import Registrar
from duly.application.requests import Requests
from duly.application.reviews import Reviews
from duly.application.runs import Runs
from duly.application.schedules import Schedules
from duly.application.sessions import Sessions
from duly.application.tally import Tally
from duly.application.telling import Everybody
from duly.application.templates import Templates
from duly.application.tickets import Tickets
from duly.application.timekeeping import Timekeeping
from duly.application.tokens import Tokens
from duly.application.webhooks import EndpointBook, Webhooks
from duly.application.why import Why
from duly.application.workflow_targets import Payer
from duly.application.workflows import Workflows
from duly.bootstrap.stores import is_postgres, open_storage, reading, require_database, storage_opener
from duly.courier.courier import Courier
from duly.domain.billing import FreeModels
from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName
from duly.domain.instants import Micros
from duly.domain.webhooks.deliveries import DEFAULT_PACE, DeliveryPace
from duly.domain.webhooks.events import Ended
from duly.graphs.dag import DagGraphs
from duly.graphs.langgraph import LangGraphs
from duly.graphs.python import PythonGraphs
from duly.graphs.registry import Registry as Registry  # noqa: PLC0414 - front doors take it from here
from duly.graphs.router import Provider, Router
from duly.ports.dice import Dice
from duly.ports.storage import ReadOnlyStorage, Storage
from duly.ports.telemetry import Telemetry
from duly.ports.tracing import Tracing
from duly.settings import Settings as Settings  # noqa: PLC0414 - front doors take it from here
from duly.storage.facts import StoreFacts as StoreFacts  # noqa: PLC0414 - front doors take it from here
from duly.system.dice import SystemDice
from duly.system.prices import TablePrices
from duly.system.tracing import tracing_of
from duly.timekeeper.timekeeper import Timekeeper
from duly.worker.calls import Call as Call  # noqa: PLC0414
from duly.worker.commands import command as command  # noqa: PLC0414
from duly.worker.commands import commands as commands  # noqa: PLC0414
from duly.worker.context import JobContext as JobContext  # noqa: PLC0414
from duly.worker.context import Stopped as Stopped  # noqa: PLC0414
from duly.worker.direct_calls import DirectCalls as DirectCalls  # noqa: PLC0414
from duly.worker.handlers import DoNotRetry as DoNotRetry  # noqa: PLC0414
from duly.worker.handlers import Handler as Handler  # noqa: PLC0414
from duly.worker.pulse import OwnThread, ThreadPulse
from duly.worker.traces import own_frames as own_frames  # noqa: PLC0414
from duly.worker.worker import GRACE as GRACE  # noqa: PLC0414
from duly.worker.worker import PATIENCE
from duly.worker.worker import Worker as Worker  # noqa: PLC0414

if TYPE_CHECKING:
    from duly.courier.sender import HttpSender
    from duly.system.telemetry import Telemetry as Meter
    from duly.worker.graph_runs import GraphRuns as GraphRuns  # noqa: PLC0414

T = TypeVar("T")
# Whoever hears nothing for so long asks again, under the same key.
_LONGEST_ANSWER_S = 300.0


@dataclass(frozen=True, slots=True)
class Queue:
    """The durable queue on one store: a use case per method, a noun per attribute."""

    settings: Settings
    storage: Storage
    dice: Dice
    accounts: Accounts
    audit: Audit
    budgets: Budgets
    declarations: Declarations
    execution_events: ExecutionEvents
    governance: Governance
    grants: Grants
    groups: Groups
    health: Health
    jobs: Jobs
    logs: Logs
    money: Money
    money_audit: MoneyAudit
    order: Order
    pools: Pools
    requests: Requests
    reviews: Reviews
    runs: Runs
    schedules: Schedules
    sessions: Sessions
    templates: Templates
    tickets: Tickets
    timekeeping: Timekeeping
    tokens: Tokens
    why: Why
    workflows: Workflows
    dag_runs: DagRuns
    webhooks: Webhooks
    launches: Launches
    registrar: Registrar
    telemetry: Telemetry
    meter: "Meter | None" = None

    @classmethod
    async def observed(cls, settings: Settings, *listeners: Telemetry) -> Self:
        """One whose facts are logged and counted for metrics, and told to those listeners, too."""
        meter = _new_meter()
        queue = await cls.open(settings, Everybody(meter, *listeners))
        return replace(queue, meter=meter)

    @classmethod
    async def open(cls, settings: Settings, telemetry: Telemetry | None = None) -> Self:
        return cls.on(await open_storage(settings), SystemDice(), settings, telemetry)

    @classmethod
    def on(cls, storage: Storage, dice: Dice, settings: Settings, telemetry: Telemetry | None = None) -> Self:
        places, pace, prices = Places(), settings.pace, TablePrices(settings.free_models or FreeModels())
        telemetry = Tally() if telemetry is None else telemetry
        schedules = Schedules(storage, dice, places, pace, settings.policies, telemetry, GraphGrants(dice, prices))
        accounts = Accounts(storage, dice, prices)
        payer = Payer(accounts, schedules.graphs)
        return cls(
            settings=settings,
            storage=storage,
            dice=dice,
            accounts=accounts,
            audit=Audit(storage=storage, outage_after=pace.outage_after),
            budgets=Budgets(storage, dice),
            declarations=Declarations(schedules),
            execution_events=ExecutionEvents(storage),
            governance=Governance(schedules),
            grants=Grants(storage, dice),
            groups=Groups(storage, dice, pace, EndpointBook(dice, settings.addresses), places, prices),
            health=Health(storage, pace),
            jobs=Jobs(storage, dice, places, prices),
            logs=Logs(storage),
            money=Money(storage, dice, prices),
            money_audit=MoneyAudit(storage=storage),
            order=Order(storage),
            pools=Pools(storage),
            requests=Requests(storage, dice),
            reviews=Reviews(storage),
            runs=Runs(storage, pace),
            schedules=schedules,
            sessions=Sessions(storage, dice),
            templates=Templates(storage, EndpointBook(dice, settings.addresses)),
            tickets=Tickets(storage, dice),
            timekeeping=Timekeeping(storage, dice, places, pace),
            tokens=Tokens(storage, dice),
            why=Why(storage=storage, outage_after=pace.outage_after),
            workflows=Workflows(storage, dice, schedules, payer),
            dag_runs=DagRuns(storage),
            webhooks=Webhooks(storage, dice, settings.addresses),
            launches=Launches(storage, dice, payer),
            registrar=Registrar(storage, dice, schedules, payer),
            telemetry=telemetry,
        )

    def within(self, connection: object) -> Jobs:
        """Puts in the transaction of a caller's own Postgres connection: committed with it, and gone with it."""
        if not is_postgres(self.settings.database_url):
            raise InvalidInput(
                "connection",
                "the database is SQLite, whose one writer takes part in nobody's transaction",
                fix="put without it, or use Postgres",
            )
        from duly.storage.postgres.callers import CallersStorage  # noqa: PLC0415
        from duly.storage.postgres.storage import PostgresStorage  # noqa: PLC0415

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
        return Executions(
            storage=self.storage,
            dice=self.dice,
            graphs=Router(graphs, self._graph_providers()),
            grants=self.grants,
            accounts=self.accounts,
            money=self.money,
            schedules=self.schedules,
            pace=pace or AttemptPace(),
            tracing=_tracing(),
        )

    def _graph_providers(self) -> dict[str, Provider]:
        providers: dict[str, Provider] = {
            "python": PythonGraphs(),
            "langgraph": LangGraphs(Checkpoints(self.storage)),
            "dag": DagGraphs(runs=self.dag_runs, clock=self.storage.clock, dice=self.dice),
        }
        if self.settings.graph_secret:
            # An HTTP client takes a tenth of a second to load.
            from duly.graphs.http import HttpGraphs  # noqa: PLC0415

            providers["http"] = HttpGraphs(self.storage.clock, self.settings.graph_secret.encode())
        return providers

    def graph_runs(self, graphs: Registry, *, pace: AttemptPace | None = None) -> "GraphRuns":
        """The handler of `graph.run`: asks the execution service that the settings name, or one in this process.

        Either way it is an HTTP call with the same token: one path, one contract.
        """
        # What they need takes a tenth of a second to load, and only those who run graphs need it.
        import httpx2  # noqa: PLC0415

        from duly.http.executions import internal_api  # noqa: PLC0415
        from duly.http.services import ServiceAccess  # noqa: PLC0415
        from duly.worker.graph_runs import GraphRuns  # noqa: PLC0415

        secret, url = self.settings.internal_api_token, self.settings.internal_api_url
        transport: httpx2.AsyncBaseTransport | None = None
        service: Executions | None = None
        if url is None:
            secret = secret or self.dice.secret()
            service = self.executions(graphs, pace=pace)
            transport = httpx2.ASGITransport(internal_api(self, service, ServiceAccess(secret=secret)))
        else:
            secret = internal_token(self.settings)
        client = httpx2.AsyncClient(
            base_url=url or "http://127.0.0.1",
            transport=transport,
            timeout=httpx2.Timeout(_LONGEST_ANSWER_S, connect=10.0),
            headers={"Authorization": f"Bearer {secret}", "X-Duly-Service": "duly-worker"},
        )
        return GraphRuns(
            clock=self.storage.clock,
            jobs=self.jobs,
            grants=self.grants,
            runs=self.runs,
            client=client,
            executions=service,
            tracing=_tracing(),
        )

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
            from duly.courier.sender import HttpSender  # noqa: PLC0415

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


def internal_token(settings: Settings) -> str:
    if settings.internal_api_token is None:
        raise InvalidInput(
            "DULY_INTERNAL_API_TOKEN", "is not set", fix="set it alike for the execution service and for every worker"
        )
    return settings.internal_api_token


def _worded(ended: Ended) -> tuple[str, str]:
    """Shapes are imported where something is told: most programs tell nobody."""
    from duly.wire.webhooks import worded  # noqa: PLC0415

    return worded(ended)


@cache
def _tracing() -> Tracing:
    """One for the process: what sends spans has a thread of its own."""
    return tracing_of(os.environ)


def _new_meter() -> "Meter":
    """Imported where it is made: who only looks something up need not wait for it."""
    from duly.system.telemetry import Telemetry as Meter  # noqa: PLC0415

    return Meter()
