"""One transaction's stores, shared by both databases."""

from duly.storage.executor import Executor
from duly.storage.sql.accounts import SqlAccounts
from duly.storage.sql.audit import SqlAudit
from duly.storage.sql.budgets import SqlBudgets
from duly.storage.sql.checkpoints import SqlCheckpoints
from duly.storage.sql.claims import Claims, HotPath
from duly.storage.sql.declarations import SqlDeclarations
from duly.storage.sql.estimates import SqlEstimates
from duly.storage.sql.executions import SqlExecutions
from duly.storage.sql.grants import SqlGrants
from duly.storage.sql.groups import SqlGroups
from duly.storage.sql.health import SqlHealth
from duly.storage.sql.holds import SqlHolds
from duly.storage.sql.jobs import SqlJobs
from duly.storage.sql.ledger import SqlLedger
from duly.storage.sql.logs import SqlLogs
from duly.storage.sql.money_audit import SqlMoneyAudit
from duly.storage.sql.order import SqlOrder
from duly.storage.sql.origins import SqlOrigins
from duly.storage.sql.pools import SqlPools
from duly.storage.sql.requests import SqlRequests
from duly.storage.sql.retries import SqlRetries
from duly.storage.sql.reviews import SqlReviews
from duly.storage.sql.runs import SqlRuns
from duly.storage.sql.schedules import SqlSchedules
from duly.storage.sql.sessions import SqlSessions
from duly.storage.sql.templates import SqlTemplates
from duly.storage.sql.tickets import SqlTickets
from duly.storage.sql.tokens import SqlTokens
from duly.storage.sql.webhooks import SqlWebhooks
from duly.storage.sql.why import SqlWhy
from duly.storage.sql.workflows import SqlWorkflows


class SqlTransaction:
    """Stores are made when they are asked for: most transactions need one, and there are thousands a second."""

    __slots__ = ("_hot", "_x")

    def __init__(self, executor: Executor, hot: HotPath) -> None:
        self._x = executor
        self._hot = hot

    @property
    def accounts(self) -> SqlAccounts:
        return SqlAccounts(self._x)

    @property
    def audit(self) -> SqlAudit:
        return SqlAudit(self._x)

    @property
    def checkpoints(self) -> SqlCheckpoints:
        return SqlCheckpoints(self._x)

    @property
    def budgets(self) -> SqlBudgets:
        return SqlBudgets(self._x)

    @property
    def declarations(self) -> SqlDeclarations:
        return SqlDeclarations(self._x)

    @property
    def estimates(self) -> SqlEstimates:
        return SqlEstimates(self._x)

    @property
    def executions(self) -> SqlExecutions:
        return SqlExecutions(self._x)

    @property
    def grants(self) -> SqlGrants:
        return SqlGrants(self._x)

    @property
    def groups(self) -> SqlGroups:
        return SqlGroups(self._x)

    @property
    def health(self) -> SqlHealth:
        return SqlHealth(self._x)

    @property
    def holds(self) -> SqlHolds:
        return SqlHolds(self._x)

    @property
    def jobs(self) -> SqlJobs:
        return SqlJobs(self._x)

    @property
    def ledger(self) -> SqlLedger:
        return SqlLedger(self._x)

    @property
    def logs(self) -> SqlLogs:
        return SqlLogs(self._x)

    @property
    def money_audit(self) -> SqlMoneyAudit:
        return SqlMoneyAudit(self._x)

    @property
    def order(self) -> SqlOrder:
        return SqlOrder(self._x)

    @property
    def origins(self) -> SqlOrigins:
        return SqlOrigins(self._x)

    @property
    def pools(self) -> SqlPools:
        return SqlPools(self._x, self._claims)

    @property
    def requests(self) -> SqlRequests:
        return SqlRequests(self._x)

    @property
    def retries(self) -> SqlRetries:
        return SqlRetries(self._x)

    @property
    def reviews(self) -> SqlReviews:
        return SqlReviews(self._x)

    @property
    def runs(self) -> SqlRuns:
        return SqlRuns(self._x)

    @property
    def schedules(self) -> SqlSchedules:
        return SqlSchedules(self._x)

    @property
    def sessions(self) -> SqlSessions:
        return SqlSessions(self._x, self._claims, self.tickets)

    @property
    def templates(self) -> SqlTemplates:
        return SqlTemplates(self._x)

    @property
    def tickets(self) -> SqlTickets:
        return SqlTickets(self._x, self._claims)

    @property
    def tokens(self) -> SqlTokens:
        return SqlTokens(self._x)

    @property
    def workflows(self) -> SqlWorkflows:
        return SqlWorkflows(self._x)

    @property
    def webhooks(self) -> SqlWebhooks:
        return SqlWebhooks(self._x)

    @property
    def why(self) -> SqlWhy:
        return SqlWhy(self._x)

    @property
    def _claims(self) -> Claims:
        return Claims(self._x, self._hot)
