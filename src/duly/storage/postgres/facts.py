"""What a Postgres server says of itself."""

from duly.domain.instants import Instant, Micros
from duly.storage.facts import StoreFacts
from duly.storage.postgres.connections import Connection, connect
from duly.storage.postgres.errors import DRIVER_ERRORS, translated
from duly.storage.postgres.limits import Limits
from duly.storage.postgres.migrations import applied_migrations, known_migrations
from duly.system.clock import SystemClock

_SQL = "SELECT current_setting('server_version'), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


async def postgres_facts(url: str) -> StoreFacts:
    raw = await connect(url, Limits())
    clock = SystemClock()
    try:
        before = clock.now()
        version, database_now = await raw.fetchrow(_SQL)
        halfway = (before + clock.now()) // 2
        applied = await applied_migrations(Connection(raw))
    except DRIVER_ERRORS as error:
        raise translated(error, "reading", closed=raw.is_closed()) from error
    finally:
        await raw.close()
    return StoreFacts(
        engine="postgres",
        version=str(version),
        schema_found=max((number for number, _ in applied), default=0),
        schema_known=len(known_migrations()),
        clock_offset=Micros(Instant(database_now) - halfway),
    )
