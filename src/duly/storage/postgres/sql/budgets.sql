-- Budgets, where Postgres differs.

-- name: stop_holds
-- Differs: others write holds at the same time; this waits for all who do, and lets nobody begin.
LOCK TABLE holds IN SHARE MODE
