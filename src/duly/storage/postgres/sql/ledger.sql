-- The ledger, where Postgres differs.

-- name: lock_coverage
-- Differs: heartbeats meet on the server, and before the first there is no row to lock. The number is ours alone.
SELECT pg_advisory_xact_lock(1685417082)
