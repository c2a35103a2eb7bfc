"""Every use case on one store, a noun each."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from duly.application.accounts import Accounts
from duly.application.audit import Audit
from duly.application.budgets import Budgets
from duly.application.dag_runs import DagRuns
from duly.application.declarations import Declarations
from duly.application.execution_events import ExecutionEvents
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
from duly.application.templates import Templates
from duly.application.tickets import Tickets
from duly.application.timekeeping import Timekeeping
from duly.application.tokens import Tokens
from duly.application.webhooks import EndpointBook, Webhooks
from duly.application.why import Why
from duly.application.workflow_targets import Payer
from duly.application.workflows import Workflows
from duly.domain.billing import FreeModels
from duly.ports.dice import Dice
from duly.ports.storage import Storage
from duly.ports.telemetry import Telemetry
from duly.settings import Settings
from duly.system.prices import TablePrices

if TYPE_CHECKING:
    from duly.system.telemetry import Telemetry as Meter


@dataclass(frozen=True, slots=True)
class WiredUseCases:
    """A use case per method, a noun per attribute."""

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
    def on(cls, storage: Storage, dice: Dice, settings: Settings, telemetry: Telemetry | None = None) -> Self:
        places, pace, prices = Places(), settings.pace, TablePrices(settings.free_models or FreeModels())
        telemetry = Tally() if telemetry is None else telemetry
        schedules = Schedules(storage, dice, places, pace, GraphGrants(dice, prices), settings.policies, telemetry)
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
