"""Measures asyncpg against psycopg 3 on the statements a queue lives on; figures in decision 0004.

Alternates the drivers round by round on one server, so that a noisy machine is noisy for both.
"""

import asyncio
import json
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import psycopg
from psycopg import AsyncConnection

ROWS = 500
ROUNDS = 16  # even: each driver goes first as often as the other
SECONDS = 1.0

TABLE = """
DROP TABLE IF EXISTS driver_jobs;
CREATE TABLE driver_jobs (id text PRIMARY KEY, state text NOT NULL, pool text NOT NULL, priority int NOT NULL,
  position bigint NOT NULL, token text, claimed_at bigint, payload text NOT NULL) WITH (fillfactor = 70);
CREATE INDEX ON driver_jobs (pool, priority, position) WHERE state = 'ready';
"""
CLAIM = """UPDATE driver_jobs SET state = 'ready', token = {2}, claimed_at = {3}
 WHERE id = ANY({1}::text[]) RETURNING id, state, pool, priority, position, token, claimed_at, payload"""
BULK = """INSERT INTO driver_jobs SELECT i, 'ready', 'default', p, o, NULL, NULL, d
 FROM unnest({1}::text[], {2}::int[], {3}::bigint[], {4}::text[]) AS r(i, p, o, d)"""
ONE = "INSERT INTO driver_jobs VALUES ({1}, 'ready', 'default', {2}, {3}, NULL, NULL, {4})"
PAYLOAD = json.dumps({"graph": "langgraph:digest", "input": {"topic": "x" * 80}})


def dollars(sql: str) -> str:
    return sql.format(None, "$1", "$2", "$3", "$4")


class Asyncpg:
    name = "asyncpg"

    async def open(self, url: str) -> None:
        self.c = await asyncpg.connect(url)
        self.claim_s = await self.c.prepare(dollars(CLAIM))
        self.bulk_s = await self.c.prepare(dollars(BULK))
        self.one_s = await self.c.prepare(dollars(ONE))

    async def claim(self, ids: list[str], token: str, now: int) -> list[Any]:
        return list(await self.claim_s.fetch(ids, token, now))

    async def bulk(self, *columns: list[Any]) -> None:
        await self.bulk_s.fetch(*columns)

    async def one(self, *values: Any) -> None:
        await self.one_s.fetch(*values)

    async def close(self) -> None:
        await self.c.close()


class Psycopg:
    name = "psycopg"

    async def open(self, url: str) -> None:
        self.c = await AsyncConnection.connect(url, autocommit=True, prepare_threshold=0)
        # Binary both ways is psycopg's own advice for arrays and numbers.
        self.cursor = self.c.cursor(binary=True)
        self.claim_sql = CLAIM.replace("{1}", "%(ids)b").replace("{2}", "%(token)b").replace("{3}", "%(now)b")
        self.bulk_sql = BULK.format(None, "%b", "%b", "%b", "%b")
        self.one_sql = ONE.format(None, "%b", "%b", "%b", "%b")

    async def claim(self, ids: list[str], token: str, now: int) -> list[Any]:
        await self.cursor.execute(self.claim_sql, {"ids": ids, "token": token, "now": now}, prepare=True)
        return await self.cursor.fetchall()

    async def bulk(self, *columns: list[Any]) -> None:
        await self.cursor.execute(self.bulk_sql, columns, prepare=True)

    async def one(self, *values: Any) -> None:
        await self.cursor.execute(self.one_sql, values, prepare=True)

    async def close(self) -> None:
        await self.c.close()


Driver = Asyncpg | Psycopg
serial = iter(range(1, 10**9))


async def rate(callers: list[Driver], step: Callable[[Driver], Awaitable[int]]) -> tuple[float, float]:
    """Rows per second of wall time, and per second of this process's CPU."""
    end = time.perf_counter() + SECONDS
    wall, cpu = time.perf_counter(), time.process_time()

    async def caller(driver: Driver) -> int:
        rows = 0
        while time.perf_counter() < end:
            rows += await step(driver)
        return rows

    rows = sum(await asyncio.gather(*map(caller, callers)))
    return rows / (time.perf_counter() - wall), rows / (time.process_time() - cpu)


async def claim(driver: Driver) -> int:
    ids = [f"seed_{n}" for n in range(ROWS)]
    return len(await driver.claim(ids, "tok_1", next(serial)))


async def bulk(driver: Driver) -> int:
    ids = [f"job_{next(serial):032d}" for _ in range(ROWS)]
    await driver.bulk(ids, [0] * ROWS, list(range(ROWS)), [PAYLOAD] * ROWS)
    return ROWS


async def one(driver: Driver) -> int:
    await driver.one(f"job_{next(serial):032d}", 0, next(serial), PAYLOAD)
    return 1


async def main(url: str) -> None:
    admin = await asyncpg.connect(url)
    await admin.execute(TABLE)
    seed = Asyncpg()
    await seed.open(url)
    await seed.bulk([f"seed_{n}" for n in range(ROWS)], [0] * ROWS, list(range(ROWS)), [PAYLOAD] * ROWS)
    print(
        await admin.fetchval("select version()"),
        platform.python_version(),
        asyncpg.__version__,
        psycopg.__version__,
    )
    cases = [
        ("claim 500", claim, 1),
        ("insert 500", bulk, 1),
        ("insert 1, 1 caller", one, 1),
        ("insert 1, 16 callers", one, 16),
    ]
    for title, step, n in cases:
        figures: dict[str, list[tuple[float, float]]] = {"asyncpg": [], "psycopg": []}
        drivers: dict[str, list[Driver]] = {
            "asyncpg": [Asyncpg() for _ in range(n)],
            "psycopg": [Psycopg() for _ in range(n)],
        }
        for callers in drivers.values():
            for driver in callers:
                await driver.open(url)
                await step(driver)
        for round_ in range(ROUNDS):
            for name in ("asyncpg", "psycopg") if round_ % 2 else ("psycopg", "asyncpg"):
                figures[name].append(await rate(drivers[name], step))
            await admin.execute("DELETE FROM driver_jobs WHERE id LIKE 'job%'")
            await admin.execute("VACUUM driver_jobs")
        ratios = [a[0] / p[0] for a, p in zip(figures["asyncpg"], figures["psycopg"], strict=True)]
        row = {name: [round(statistics.median(f[i] for f in found)) for i in (0, 1)] for name, found in figures.items()}
        print(
            f"{title:21} {row} ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})",
            flush=True,
        )
        for callers in drivers.values():
            for driver in callers:
                await driver.close()
    await seed.close()
    await admin.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
