"""The port on the real schema; what the stores promise is the contracts' business."""

import asyncio

import pytest

from duly.domain.errors import Unavailable
from duly.ports.storage import Storage, Transaction
from duly.storage.postgres.migrations import known_migrations
from duly.storage.postgres.storage import PostgresStorage
from tests.adapters.postgres.notes import connected


def test_a_storage_opens_on_an_empty_database_and_again_on_its_own(fresh_postgres_url: str) -> None:
    async def nothing(tx: Transaction) -> str:
        assert tx.jobs is not None
        return "done"

    async def scenario() -> None:
        for migrate in (True, False):
            storage: Storage = await PostgresStorage.open(fresh_postgres_url, migrate=migrate)
            assert storage.clock.era == "postgres"
            assert await storage.transact(nothing) == "done"
            assert await storage.read(nothing) == "done"
            await storage.close()
            with pytest.raises(Unavailable, match="closed"):
                await storage.read(nothing)
        async with connected(fresh_postgres_url) as witness:
            assert await witness.fetchval("SELECT count(*) FROM schema_migrations") == len(known_migrations())

    asyncio.run(scenario())
