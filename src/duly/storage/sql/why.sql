-- What only whoever asks why wants to know: looks, and nothing else.

-- name: holders_of_pool
-- What waits has no session, so none of it is among what has just arrived.
SELECT {job_columns} FROM {jobs_of_runs}
WHERE session IS NOT NULL
  AND (pool = :pool
       OR state = 'running'
          AND replace(',' || resources || ',', ',' || CAST(:pool AS text) || ',', '') <> ',' || resources || ',')
ORDER BY COALESCE(started_at, created_at), id LIMIT :most

-- name: calls_in_pool
SELECT count(*) FROM tickets WHERE pool = :pool AND state = 'held'

-- name: count_ahead
SELECT count(*) FROM jobs
WHERE pool = :pool AND state = 'ready' AND (rank, position, created_at, id) < (:rank, :position, :created_at, :id)

-- name: first_ahead
SELECT {job_columns} FROM jobs
WHERE pool = :pool AND state = 'ready' AND (rank, position, created_at, id) < (:rank, :position, :created_at, :id)
ORDER BY {in_order} LIMIT :most

-- name: head_of_lane
SELECT {job_columns} FROM {jobs_of_runs}
WHERE lane = :lane AND lane IS NOT NULL AND state NOT IN ('scheduled', 'waiting')

-- name: count_ahead_in_lane
SELECT count(*) FROM {jobs_of_runs}
WHERE lane = :lane AND state = 'waiting' AND (rank, position, created_at, id) < (:rank, :position, :created_at, :id)

-- name: aside_of_job
SELECT parked_on, share FROM jobs WHERE id = :id

-- name: share_used
SELECT count(*) FROM jobs WHERE pool = :pool AND share = :share AND share IS NOT NULL AND session IS NOT NULL

-- name: seen_session
SELECT id, name, seen_at FROM sessions WHERE id = :id

-- name: asked_by_hand
SELECT job_id, asked_at FROM manual_retries WHERE chain = :chain

-- name: accepted_at
SELECT accepted_at FROM dag_runs WHERE run_id = :run_id

-- name: run_of_execution
SELECT id FROM schedule_runs WHERE run_id = :execution AND run_id IS NOT NULL LIMIT 1
