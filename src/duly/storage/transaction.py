"""One transaction's stores, shared by both databases."""

from duly.storage.executor import Executor
from duly.storage.sql.jobs import SqlJobs
from duly.storage.sql.pools import SqlPools
from duly.storage.sql.sessions import SqlSessions
from duly.storage.sql.tickets import SqlTickets


class SqlTransaction:
    __slots__ = ("jobs", "pools", "sessions", "tickets")

    def __init__(self, executor: Executor) -> None:
        self.jobs = SqlJobs(executor)
        self.pools = SqlPools(executor)
        self.sessions = SqlSessions(executor)
        self.tickets = SqlTickets(executor)
