-- Jobs as callers list them, by id. A job is its run's, its template's or its group's owner's; any other is nobody's.

-- fragment: asked_of_live
(CAST(:pool AS text) IS NULL OR pool = :pool) AND (CAST(:state AS text) IS NULL OR state = :state)

-- fragment: is_of_owner
(ledger_run IS NOT NULL
   AND EXISTS (SELECT 1 FROM schedule_runs r WHERE r.id = ledger_run AND r.owner_user_id = :owner)
 OR EXISTS (SELECT 1 FROM job_origins o WHERE o.chain_id = chain AND o.owner_user_id = :owner))

-- name: live_jobs
SELECT {job_columns} FROM jobs WHERE id > :after AND {asked_of_live} ORDER BY id LIMIT :most

-- name: live_jobs_of_owner
SELECT {job_columns} FROM jobs WHERE id > :after AND {asked_of_live} AND {is_of_owner} ORDER BY id LIMIT :most

-- name: ended_jobs
-- Of all, or of those that ended well, as most do. Those of a pool that few of them used are looked for among all: an index
-- of them would cost Postgres a tenth of what it can end.
SELECT {finished_columns} FROM finished_jobs
WHERE id < :before AND (CAST(:status AS text) IS NULL OR status = :status)
  AND (CAST(:pool AS text) IS NULL OR pool = :pool)
ORDER BY id DESC LIMIT :most

-- name: ended_jobs_aside
-- What an index is for is compared as a row here and below: as equalities it is no order of its own to Postgres, which then
-- reads everything by id wherever it believes that it will meet enough of what is asked for.
SELECT {finished_columns} FROM finished_jobs
WHERE (status, id) < (:status, :before) AND status >= :status AND status <> 'COMPLETED'
ORDER BY status DESC, id DESC LIMIT :most

-- name: ended_jobs_aside_of_pool
SELECT {finished_columns} FROM finished_jobs
WHERE (pool, status, id) < (:pool, :status, :before) AND (pool, status) >= (:pool, :status) AND status <> 'COMPLETED'
ORDER BY pool DESC, status DESC, id DESC LIMIT :most

-- name: ended_jobs_of_owner
SELECT {finished_columns} FROM finished_jobs
WHERE (owner_user_id, status, id) < (:owner, :status, :before) AND (owner_user_id, status) >= (:owner, :status)
  AND owner_user_id IS NOT NULL AND (CAST(:pool AS text) IS NULL OR pool = :pool)
ORDER BY owner_user_id DESC, status DESC, id DESC LIMIT :most
