-- Claims: what a worker is handed. Both databases answer these columns.

-- fragment: claimed_columns
id, kind, payload, key, lane, pool, resources, attempt, max_attempts, run_at, created_at, timeout_ms, chain, token,
state, rank, position, ledger_run

-- name: claimed_before
-- What an earlier run of the same exchange has claimed.
SELECT {claimed_columns} FROM jobs WHERE session = :session AND token = :token
