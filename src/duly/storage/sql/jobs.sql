-- Jobs: what is put, looked at, cancelled, staged and pruned. Text shared by both databases.

-- fragment: job_columns
id, kind, payload, key, lane, pool, resources, priority, rank, position, run_at, created_at, state, attempt,
max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain, session, token, started_at, cancel_reason,
ledger_run, member

-- fragment: finished_columns
id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of, chain,
session, token, started_at, finished_at, status, error, exit_code, result, ledger_run, backoff_ms,
backoff_cap_ms, timeout_ms, retryable

-- fragment: owner_of_ended
-- Kept with what has ended, so that an owner's can be found among everybody's.
COALESCE((SELECT owner_user_id FROM schedule_runs r WHERE r.id = ledger_run),
         (SELECT owner_user_id FROM job_origins o WHERE o.chain_id = chain))

-- fragment: in_order
rank, position, created_at, id

-- name: job_by_id
-- A live job, to look at.
SELECT {job_columns} FROM jobs WHERE id = :id

-- name: job_by_id_locked
-- A live job, kept from changing until commit. The full lock makes putters of its lane wait for our decision.
SELECT {job_columns} FROM jobs WHERE id = :id {lock}

-- name: job_by_key_locked
-- The live job that holds a key.
SELECT {job_columns} FROM jobs WHERE key = :key {lock}

-- name: finished_by_id
SELECT {finished_columns} FROM finished_jobs WHERE id = :id

-- name: is_known
-- Whether an id was ever put: a put that is repeated must find its own row, even a finished one.
SELECT 1 FROM jobs WHERE id = :id
UNION ALL
SELECT 1 FROM finished_jobs WHERE id = :id

-- name: live_chain
-- The live end of a chain of retries, if it has one.
SELECT {job_columns} FROM jobs WHERE chain = :chain AND retry_of IS NOT NULL
UNION ALL
SELECT {job_columns} FROM jobs WHERE id = :chain

-- name: finished_chain
-- The ended attempts of a chain, first to last.
SELECT {finished_columns} FROM finished_jobs WHERE chain = :chain AND retry_of IS NOT NULL
UNION ALL
SELECT {finished_columns} FROM finished_jobs WHERE id = :chain
ORDER BY attempt

-- name: upcoming
-- The order in which a pool will run what is ready.
SELECT {job_columns} FROM jobs WHERE pool = :pool AND state = 'ready' ORDER BY {in_order} LIMIT :most

-- name: replace_job
-- An unlocked job now asks for what a newer put under the same key asked, and begins a chain of its own. It leaves its
-- lane; the caller joins it again.
UPDATE jobs SET
  kind = :kind, payload = :payload, lane = :lane, pool = :pool, resources = :resources, priority = :priority,
  rank = (SELECT CASE WHEN ageing_ms IS NULL THEN -CAST(:priority AS bigint)
               ELSE :position - CAST(:priority AS bigint) * ageing_ms * 1000 END
          FROM pools WHERE name = :pool),
  position = :position, run_at = :run_at, state = :state, parked_on = NULL,
  max_attempts = :max_attempts, attempt = 1, backoff_ms = :backoff_ms, backoff_cap_ms = :backoff_cap_ms,
  timeout_ms = :timeout_ms, retry_of = NULL, chain = id
WHERE id = :id

-- name: request_cancel
-- The worker that runs it will learn of it; the first reason stands.
UPDATE jobs SET cancel_reason = COALESCE(cancel_reason, :reason) WHERE id = :id

-- name: record_withdrawn
-- A job that never started ends without a run.
INSERT INTO finished_jobs ({finished_columns}, owner_user_id)
SELECT id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of,
       chain, NULL, NULL, NULL, :now, 'CANCELLED', :reason, NULL, NULL, ledger_run,
       backoff_ms, backoff_cap_ms, timeout_ms, NULL, {owner_of_ended}
FROM jobs WHERE id = :id

-- name: remove_job
DELETE FROM jobs WHERE id = :id RETURNING member

-- name: due
-- Jobs whose time has come.
SELECT id, lane, pool, state FROM jobs
WHERE state IN ('scheduled', 'backoff') AND run_at <= :now
ORDER BY run_at LIMIT :most {lock:update skip locked}

-- name: next_due_at
SELECT min(run_at) FROM jobs WHERE state IN ('scheduled', 'backoff')

-- name: prune_finished
-- Oldest first and a few at a time, so that nobody waits for it. A running group may still ask for what its members left.
DELETE FROM finished_jobs WHERE id IN
  (SELECT id FROM finished_jobs f WHERE finished_at < :before
     AND NOT EXISTS (SELECT 1 FROM group_members m JOIN job_groups g ON g.id = m.group_id
                     WHERE m.job_id = f.chain AND g.status = 'RUNNING')
   ORDER BY finished_at LIMIT :most)
RETURNING id, chain

-- name: set_payload
-- Only of a job that nobody has; the schema would refuse any other.
UPDATE jobs SET payload = :payload WHERE id = :id

-- name: finished_by_id_locked
-- An ended job that is to be tried again, by one caller at a time.
SELECT {finished_columns} FROM finished_jobs WHERE id = :id {lock}

-- name: last_of_chain
-- The last attempt of a chain that has ended.
SELECT id, attempt FROM finished_jobs WHERE chain = :chain AND retry_of IS NOT NULL
UNION ALL
SELECT id, attempt FROM finished_jobs WHERE id = :chain
ORDER BY attempt DESC LIMIT 1

-- name: live_of_chain
SELECT id FROM jobs WHERE chain = :chain AND retry_of IS NOT NULL
UNION ALL
SELECT id FROM jobs WHERE id = :chain

-- fragment: has_failed_for_good
-- The last attempt of its chain: an automatic retry enters together with the end of what it retries.
NOT EXISTS (SELECT 1 FROM finished_jobs n WHERE n.chain = f.chain AND n.retry_of IS NOT NULL AND n.retry_of = f.id)
  AND NOT EXISTS (SELECT 1 FROM jobs n WHERE n.chain = f.chain AND n.retry_of IS NOT NULL AND n.retry_of = f.id)

-- name: failed_jobs
SELECT {finished_columns} FROM finished_jobs f
WHERE (status, id) < ('FAILED', :before) AND status >= 'FAILED' AND status <> 'COMPLETED'
  AND {has_failed_for_good} AND {asked_of_failed}
ORDER BY status DESC, id DESC LIMIT :most

-- name: failed_jobs_of_pool
SELECT {finished_columns} FROM finished_jobs f
WHERE (pool, status, id) < (:pool, 'FAILED', :before) AND (pool, status) >= (:pool, 'FAILED')
  AND status <> 'COMPLETED'
  AND {has_failed_for_good} AND {asked_of_failed}
ORDER BY pool DESC, status DESC, id DESC LIMIT :most

-- name: failed_jobs_of_owner
SELECT {finished_columns} FROM finished_jobs f
WHERE (owner_user_id, status, id) < (:owner, 'FAILED', :before) AND (owner_user_id, status) >= (:owner, 'FAILED')
  AND owner_user_id IS NOT NULL AND {has_failed_for_good} AND {asked_of_failed}
ORDER BY owner_user_id DESC, status DESC, id DESC LIMIT :most

-- fragment: asked_of_failed
(CAST(:pool AS text) IS NULL OR pool = :pool) AND (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND finished_at >= :since AND finished_at < :until

-- name: retry_by_key
SELECT job_id FROM manual_retries WHERE chain = :chain AND key = :key

-- name: last_manual_retry
-- The attempt with which the chain's budget was last renewed.
SELECT max(attempt) FROM manual_retries WHERE chain = :chain

-- name: executed_anew_under
-- The key of an attempt and of those that follow it by themselves, if its graph was to be executed anew.
SELECT execution_key FROM manual_retries WHERE chain = :chain AND attempt <= :attempt AND execution_key IS NOT NULL
ORDER BY attempt DESC LIMIT 1

-- name: record_retry
INSERT INTO manual_retries (job_id, chain, key, attempt, asked_at, execution_key)
VALUES (:job_id, :chain, :key, :attempt, :now, :execution_key)
ON CONFLICT (job_id) DO NOTHING

-- name: origin_of
SELECT owner_user_id, template, template_version, params_schema, webhook_url FROM job_origins WHERE chain_id = :chain

-- name: forget_origin
DELETE FROM job_origins WHERE chain_id = :chain
