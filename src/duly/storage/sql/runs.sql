-- Runs as callers list them: newest first, by ids, which are drawn in order of time.

-- fragment: as_asked
(CAST(:status AS text) IS NULL OR status = :status) AND (CAST(:kind AS text) IS NULL OR kind = :kind)

-- fragment: has_run
-- It runs or ran, or should have and could not be launched.
(status IN ('running', 'success', 'error') OR started_at IS NOT NULL)

-- name: newest_runs
SELECT {run_columns} FROM schedule_runs WHERE id < :before AND {as_asked} ORDER BY id DESC LIMIT :most

-- name: newest_runs_of_owner
SELECT {run_columns} FROM schedule_runs
WHERE owner_user_id = :owner AND id < :before AND {as_asked} ORDER BY id DESC LIMIT :most

-- name: newest_runs_of_schedule
SELECT {run_columns} FROM schedule_runs
WHERE schedule_id = :schedule_id AND id < :before AND {as_asked} ORDER BY id DESC LIMIT :most
