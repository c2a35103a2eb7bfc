"""Copies of a schedule, straight into Duly's tables: a million by its own interface would take the day."""

import asyncio
import sqlite3
from contextlib import closing

import asyncpg

_NUMBERS = (
    "WITH RECURSIVE numbers(n) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})"
)
# A copy differs in its id and in the number it carries. If copies are to lie apart, each fires later than the last.
_DIFFERENT = {
    "schedules": {"id": "{id} || '-' || n", "input": """'{{"n":' || n || '}}'"""},
    "schedule_revisions": {"schedule_id": "{id} || '-' || n", "input": """'{{"n":' || n || '}}'"""},
}
_LATER = ("next_run_at", "fire_at", "anchor_at")
_KEY = {"schedules": "id", "schedule_revisions": "schedule_id"}


def copy_schedule(place: str, schedule_id: str, count: int, *, apart_s: int = 0) -> None:
    if count == 0:
        return
    if "://" not in place:
        with closing(sqlite3.connect(place)) as connection:
            for table in _KEY:
                rows = connection.execute(f"PRAGMA table_xinfo({table})")
                columns = [name for _, name, *_, hidden in rows if not hidden]
                connection.execute(_copying(table, columns, schedule_id, count, apart_s))
            connection.commit()
        return
    asyncio.run(_copy_on_postgres(place, schedule_id, count, apart_s))


async def _copy_on_postgres(place: str, schedule_id: str, count: int, apart_s: int) -> None:
    connection = await asyncpg.connect(place)
    try:
        for table in _KEY:
            rows = await connection.fetch(
                "SELECT column_name FROM information_schema.columns WHERE table_name = $1 AND is_generated = 'NEVER'",
                table,
            )
            columns = [name for (name,) in rows]
            await connection.execute(_copying(table, columns, schedule_id, count, apart_s), timeout=300)
        await connection.execute("ANALYZE")
    finally:
        await connection.close()


def _copying(table: str, columns: list[str], schedule_id: str, count: int, apart_s: int) -> str:
    different = {name: text.format(id=f"'{schedule_id}'") for name, text in _DIFFERENT[table].items()}
    different |= {name: f"{name} + n * {apart_s * 1_000_000}" for name in _LATER if apart_s}
    values = ", ".join(different.get(name, name) for name in columns)
    return (
        f"{_NUMBERS.format(count=count)} INSERT INTO {table} ({', '.join(columns)}) "
        f"SELECT {values} FROM {table}, numbers WHERE {_KEY[table]} = '{schedule_id}'"
    )
