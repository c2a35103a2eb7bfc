-- Runs as callers list them, newest first: by ids, which are drawn in order of time.

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
-- By slot, which the index of slots answers: another index would cost every slot that is opened.
SELECT {run_columns} FROM schedule_runs
WHERE schedule_id = :schedule_id
  AND (scheduled_for, own_key) < (
    COALESCE((SELECT scheduled_for FROM schedule_runs WHERE id = :before), 9223372036854775807),
    COALESCE((SELECT own_key FROM schedule_runs WHERE id = :before), ''))
  AND {as_asked} ORDER BY scheduled_for DESC, own_key DESC LIMIT :most

-- name: note_execution
UPDATE schedule_runs SET run_id = :run_id, trace_id = :trace_id WHERE id = :id AND run_id IS NULL
