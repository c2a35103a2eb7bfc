"""PostgreSQL through asyncpg: array statements on dedicated connections."""
