-- Arrivals: plain jobs that were put alone, on their way into `jobs`.

-- fragment: jobs_of_runs
-- No arrival is a run's. The audit joins jobs in a way that would have to read all of them through the view.
main.jobs

-- name: insert_arrival
-- columns: id kind payload pool priority position run_at created_at state max_attempts backoff_ms backoff_cap_ms timeout_ms
-- As `insert_jobs`, for a first attempt without key, lane and resources. Whoever repeats a put takes the same position,
-- and is passed over by that; so is the rare one whose position another process took: it is put the longer way.
INSERT OR IGNORE INTO arrivals (
  id, kind, payload, pool, priority, position, run_at, created_at, state, max_attempts, backoff_ms, backoff_cap_ms,
  timeout_ms, rank)
VALUES (
  :id, :kind, :payload, :pool, :priority, :position, :run_at, :created_at, :state, :max_attempts, :backoff_ms,
  :backoff_cap_ms, :timeout_ms,
  (SELECT CASE WHEN ageing_ms IS NULL THEN -:priority ELSE :position - :priority * ageing_ms * 1000 END FROM pools
   WHERE name = :pool AND mode <> 'draining'
     AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = :id)
     AND NOT EXISTS (SELECT 1 FROM finished_jobs f WHERE f.id = :id)))

-- name: has_arrivals
SELECT EXISTS (SELECT 1 FROM arrivals)

-- name: absorb_arrivals
-- The id is all that can be in the way: of a job that is there already.
INSERT INTO jobs (id, kind, payload, pool, priority, rank, position, run_at, created_at, state, attempt, max_attempts,
                  backoff_ms, backoff_cap_ms, timeout_ms, chain, share)
SELECT id, kind, payload, pool, priority, rank, position, run_at, created_at, state, 1, max_attempts, backoff_ms,
       backoff_cap_ms, timeout_ms, id, (SELECT '' FROM pools WHERE name = arrivals.pool AND per_owner IS NOT NULL)
FROM arrivals WHERE true ORDER BY position
ON CONFLICT (id) DO NOTHING

-- name: forget_arrivals
DELETE FROM arrivals

-- name: jobs_and_arrivals
-- For connections that cannot absorb: under the name `jobs` they see both. The casts give both halves the same types,
-- without which SQLite would read all jobs before it looks for any.
CREATE TEMP VIEW jobs AS
SELECT id, kind, payload, key, lane, pool, resources, priority, rank, position, run_at, created_at, state, parked_on,
       attempt, max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain, session, token, started_at,
       cancel_reason, ledger_run, member, share
FROM main.jobs
UNION ALL
SELECT id, kind, payload, CAST(NULL AS TEXT), CAST(NULL AS TEXT), pool, CAST(NULL AS TEXT), priority, rank, position,
       run_at, created_at, state, CAST(NULL AS TEXT), CAST(1 AS INTEGER), max_attempts, backoff_ms, backoff_cap_ms,
       timeout_ms, CAST(NULL AS TEXT), id, CAST(NULL AS TEXT), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER),
       CAST(NULL AS TEXT), CAST(NULL AS TEXT), CAST(NULL AS TEXT), CAST(NULL AS TEXT)
FROM main.arrivals
