"""A migrated database that is emptied before each test."""

import asyncio

import asyncpg

from duly.storage.postgres.storage import PostgresStorage

_TABLES = (
    "webhook_endpoints",
    "webhook_outbox",
    "webhook_events",
    "webhook_deliveries",
    "webhook_attempts",
    "webhook_hosts",
    "templates",
    "job_origins",
    "manual_retries",
    "group_members",
    "job_groups",
    "dag_nodes",
    "dag_runs",
    "workflow_launches",
    "workflow_actions",
    "workflow_schedules",
    "workflow_versions",
    "workflows",
    "graph_checkpoint_writes",
    "graph_checkpoints",
    "execution_events",
    "reviews",
    "inbound_deliveries",
    "execution_requests",
    "api_tokens",
    "idempotency_keys",
    "declared_schedules",
    "job_logs",
    "job_progress",
    "job_artifacts",
    "jobs",
    "finished_jobs",
    "tickets",
    "sessions",
    "pools",
    "revocations",
    "coverage",
    "schedule_arrears",
    "schedule_gaps",
    "schedule_runs",
    "schedule_revisions",
    "schedules",
    "budgets",
    "charge_receipts",
    "holds",
    "credits",
    "execution_grants",
    "virtual_keys",
    "billing_accounts",
    "users",
)


class SharedPostgres:
    def __init__(self, url: str) -> None:
        self.url = url
        self._pools = asyncio.run(self._migrate())

    def empty(self) -> None:
        asyncio.run(self._empty())

    async def _migrate(self) -> list[tuple[str, int]]:
        """Answers the pools that the migration made."""
        await (await PostgresStorage.open(self.url, listening=False)).close()
        connection = await asyncpg.connect(self.url)
        try:
            # Races are meant to happen here: a deadlock need not be waited for long.
            name = await connection.fetchval("SELECT current_database()")
            await connection.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '50ms'")
            return [(name, slots) for name, slots in await connection.fetch("SELECT name, slots FROM pools")]
        finally:
            await connection.close()

    async def _empty(self) -> None:
        connection = await asyncpg.connect(self.url)
        try:
            async with connection.transaction():
                await connection.execute(";".join(f"DELETE FROM {table}" for table in _TABLES))
                await connection.executemany("INSERT INTO pools (name, slots) VALUES ($1, $2)", self._pools)
        finally:
            await connection.close()
