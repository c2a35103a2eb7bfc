-- Runs as callers list them, newest first: by ids, which are drawn in order of time.

-- fragment: as_asked
(CAST(:status AS text) IS NULL OR status = :status) AND (CAST(:kind AS text) IS NULL OR kind = :kind)

-- fragment: after_slot_of_before
COALESCE((SELECT scheduled_for FROM schedule_runs WHERE id = :before), 9223372036854775807),
    COALESCE((SELECT own_key FROM schedule_runs WHERE id = :before), '')

-- fragment: has_run
-- It runs or ran, or should have and could not be launched.
(status IN ('running', 'success', 'error') OR started_at IS NOT NULL)

-- name: newest_runs
SELECT {run_columns} FROM schedule_runs WHERE id < :before AND {as_asked} ORDER BY id DESC LIMIT :most

-- name: newest_runs_of_owner
SELECT {run_columns} FROM schedule_runs
WHERE (owner_user_id, id) < (:owner, :before) AND owner_user_id >= :owner AND {as_asked}
ORDER BY owner_user_id DESC, id DESC LIMIT :most

-- name: newest_runs_of_schedule
-- By slot, which the index of slots answers: another index would cost every slot that is opened.
SELECT {run_columns} FROM schedule_runs
WHERE schedule_id = :schedule_id
  AND (scheduled_for, own_key) < ({after_slot_of_before})
  AND {as_asked} ORDER BY scheduled_for DESC, own_key DESC LIMIT :most

-- name: newest_runs_aside
SELECT {run_columns} FROM schedule_runs
WHERE (ended_as, id) < (:status, :before) AND ended_as >= :status AND ended_as IS NOT NULL AND {as_asked}
ORDER BY ended_as DESC, id DESC LIMIT :most

-- name: newest_runs_aside_of_owner
SELECT {run_columns} FROM schedule_runs
WHERE (owner_user_id, ended_as, id) < (:owner, :status, :before) AND (owner_user_id, ended_as) >= (:owner, :status)
  AND ended_as IS NOT NULL AND {as_asked}
ORDER BY owner_user_id DESC, ended_as DESC, id DESC LIMIT :most

-- name: newest_runs_aside_of_schedule
SELECT {run_columns} FROM schedule_runs
WHERE (schedule_id, ended_as, scheduled_for, own_key) < (:schedule_id, :status, {after_slot_of_before})
  AND (schedule_id, ended_as) >= (:schedule_id, :status) AND ended_as IS NOT NULL AND {as_asked}
ORDER BY schedule_id DESC, ended_as DESC, scheduled_for DESC, own_key DESC LIMIT :most

-- name: newest_runs_in_flight
-- No more than are under way, whatever has ended: few enough to be put in order here.
WITH in_flight AS MATERIALIZED (SELECT {run_columns} FROM schedule_runs WHERE completed_at IS NULL)
SELECT {run_columns} FROM in_flight
WHERE id < :before AND {as_asked} AND (CAST(:owner AS text) IS NULL OR owner_user_id = :owner)
ORDER BY id DESC LIMIT :most

-- name: newest_runs_asked_for
-- By hand or for the past: few beside slots.
SELECT {run_columns} FROM schedule_runs
WHERE (kind, id) < (:kind, :before) AND kind >= :kind AND kind <> 'slot' AND {as_asked}
  AND (CAST(:owner AS text) IS NULL OR owner_user_id = :owner)
ORDER BY kind DESC, id DESC LIMIT :most

-- name: newest_runs_in_flight_of_schedule
WITH in_flight AS MATERIALIZED (
  SELECT {run_columns} FROM schedule_runs WHERE schedule_id = :schedule_id AND completed_at IS NULL)
SELECT {run_columns} FROM in_flight
WHERE (scheduled_for, own_key) < ({after_slot_of_before}) AND {as_asked}
ORDER BY scheduled_for DESC, own_key DESC LIMIT :most

-- name: newest_runs_asked_for_of_schedule
WITH asked_for AS MATERIALIZED (
  SELECT {run_columns} FROM schedule_runs WHERE schedule_id = :schedule_id AND own_key <> '')
SELECT {run_columns} FROM asked_for
WHERE (scheduled_for, own_key) < ({after_slot_of_before}) AND {as_asked}
ORDER BY scheduled_for DESC, own_key DESC LIMIT :most

-- name: note_execution
UPDATE schedule_runs SET run_id = :run_id, trace_id = :trace_id WHERE id = :id AND run_id IS NULL
