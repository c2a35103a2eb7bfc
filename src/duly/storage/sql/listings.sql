-- Jobs as callers list them, by id. A job is its run's, its template's or its group's owner's; any other is nobody's.

-- fragment: asked_of_live
(CAST(:pool AS text) IS NULL OR pool = :pool) AND (CAST(:state AS text) IS NULL OR state = :state)

-- fragment: asked_of_ended
(CAST(:pool AS text) IS NULL OR pool = :pool) AND (CAST(:status AS text) IS NULL OR status = :status)

-- fragment: is_of_owner
(ledger_run IS NOT NULL
   AND EXISTS (SELECT 1 FROM schedule_runs r WHERE r.id = ledger_run AND r.owner_user_id = :owner)
 OR EXISTS (SELECT 1 FROM job_origins o WHERE o.chain_id = chain AND o.owner_user_id = :owner))

-- name: live_jobs
SELECT {job_columns} FROM jobs WHERE id > :after AND {asked_of_live} ORDER BY id LIMIT :most

-- name: live_jobs_of_owner
SELECT {job_columns} FROM jobs WHERE id > :after AND {asked_of_live} AND {is_of_owner} ORDER BY id LIMIT :most

-- name: ended_jobs
SELECT {finished_columns} FROM finished_jobs WHERE id < :before AND {asked_of_ended} ORDER BY id DESC LIMIT :most

-- name: ended_jobs_of_owner
SELECT {finished_columns} FROM finished_jobs
WHERE id < :before AND {asked_of_ended} AND {is_of_owner} ORDER BY id DESC LIMIT :most
