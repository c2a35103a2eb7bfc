"""One transaction's stores, shared by both databases."""

from duly.storage.executor import Executor
from duly.storage.sql.audit import SqlAudit
from duly.storage.sql.claims import Claims, HotPath
from duly.storage.sql.jobs import SqlJobs
from duly.storage.sql.ledger import SqlLedger
from duly.storage.sql.order import SqlOrder
from duly.storage.sql.pools import SqlPools
from duly.storage.sql.schedules import SqlSchedules
from duly.storage.sql.sessions import SqlSessions
from duly.storage.sql.tickets import SqlTickets


class SqlTransaction:
    __slots__ = ("audit", "jobs", "ledger", "order", "pools", "schedules", "sessions", "tickets")

    def __init__(self, executor: Executor, hot: HotPath) -> None:
        claims = Claims(executor, hot)
        self.audit = SqlAudit(executor)
        self.jobs = SqlJobs(executor)
        self.ledger = SqlLedger(executor)
        self.order = SqlOrder(executor)
        self.pools = SqlPools(executor, claims)
        self.schedules = SqlSchedules(executor)
        self.tickets = SqlTickets(executor, claims)
        self.sessions = SqlSessions(executor, claims, self.tickets)
