"""The one way to a database: a use case is a function of a transaction, run until it commits once."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from duly.domain.jobs import Entry
from duly.ports.accounts import AccountStore
from duly.ports.audit import AuditStore
from duly.ports.budgets import BudgetStore
from duly.ports.checkpoints import CheckpointStore
from duly.ports.clock import Clock
from duly.ports.declarations import DeclarationStore
from duly.ports.estimates import EstimateStore
from duly.ports.executions import ExecutionStore
from duly.ports.grants import GrantStore
from duly.ports.groups import GroupStore
from duly.ports.health import HealthStore
from duly.ports.holds import HoldStore
from duly.ports.jobs import JobStore
from duly.ports.ledger import LedgerStore
from duly.ports.logs import LogStore
from duly.ports.money_audit import MoneyAuditStore
from duly.ports.order import OrderStore
from duly.ports.origins import OriginStore
from duly.ports.pools import PoolStore
from duly.ports.requests import RequestStore
from duly.ports.retries import RetryStore
from duly.ports.reviews import ReviewStore
from duly.ports.runs import RunStore
from duly.ports.schedules import ScheduleStore
from duly.ports.sessions import SessionStore
from duly.ports.templates import TemplateStore
from duly.ports.tickets import TicketStore
from duly.ports.tokens import TokenStore
from duly.ports.wakeups import Wakeups
from duly.ports.webhooks import WebhookStore
from duly.ports.why import WhyStore
from duly.ports.workflows import WorkflowStore

T = TypeVar("T")


class Transaction(Protocol):
    """A store per noun, all in one transaction."""

    @property
    def accounts(self) -> AccountStore: ...
    @property
    def audit(self) -> AuditStore: ...
    @property
    def budgets(self) -> BudgetStore: ...
    @property
    def checkpoints(self) -> CheckpointStore: ...
    @property
    def declarations(self) -> DeclarationStore: ...
    @property
    def estimates(self) -> EstimateStore: ...
    @property
    def executions(self) -> ExecutionStore: ...
    @property
    def grants(self) -> GrantStore: ...
    @property
    def groups(self) -> GroupStore: ...
    @property
    def health(self) -> HealthStore: ...
    @property
    def holds(self) -> HoldStore: ...
    @property
    def jobs(self) -> JobStore: ...
    @property
    def ledger(self) -> LedgerStore: ...
    @property
    def logs(self) -> LogStore: ...
    @property
    def money_audit(self) -> MoneyAuditStore: ...
    @property
    def order(self) -> OrderStore: ...
    @property
    def origins(self) -> OriginStore: ...
    @property
    def pools(self) -> PoolStore: ...
    @property
    def requests(self) -> RequestStore: ...
    @property
    def retries(self) -> RetryStore: ...
    @property
    def reviews(self) -> ReviewStore: ...
    @property
    def runs(self) -> RunStore: ...
    @property
    def schedules(self) -> ScheduleStore: ...
    @property
    def sessions(self) -> SessionStore: ...
    @property
    def templates(self) -> TemplateStore: ...
    @property
    def tickets(self) -> TicketStore: ...
    @property
    def tokens(self) -> TokenStore: ...
    @property
    def workflows(self) -> WorkflowStore: ...
    @property
    def webhooks(self) -> WebhookStore: ...
    @property
    def why(self) -> WhyStore: ...


Work = Callable[[Transaction], Awaitable[T]]


class ReadOnlyStorage(Protocol):
    """A database to look at, and to leave as it is."""

    @property
    def clock(self) -> Clock:
        """The clock that every process on this store agrees with."""

    async def read(self, work: Work[T]) -> T:
        """Runs `work` on one consistent snapshot, without waiting for writers; it must not write."""

    async def close(self) -> None:
        """Finishes what was submitted, then lets go of files, sockets and threads."""


class Storage(ReadOnlyStorage, Protocol):
    @property
    def wakeups(self) -> Wakeups: ...

    async def transact(self, work: Work[T], *, single: bool = False) -> T:
        """Commits what `work` wrote, once, and answers what it returned.

        `work` may be rerun (serialization failure, deadlock, an answer lost on the way), so it draws nothing and
        awaits nothing but the transaction. If it raises, nothing is written. `Unavailable` means that the outcome
        is unknown or nothing was written: calling again with the same ids is always safe.

        `single` promises that `work` runs exactly one statement, so the store may leave out BEGIN and COMMIT.
        """

    def put_at_once(self, entry: Entry) -> bool | None:
        """Commits one job as `put_if_free` adds it, where the store has a shorter way that holds nobody up.

        Answers whether it was added; None if there is no such way now, and nothing was done: `transact` it.
        """
