-- Schedules and their revisions.

-- fragment: schedule_columns
id, owner_user_id, state, state_reason, revision, opened_through, next_run_at, fire_at, last_run_at, created_at, updated_at

-- fragment: plan_columns
kind, input, pool, priority, max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, cron, timezone, every_s, anchor_at,
once_at, start_at, end_at, overlap, catch_up, catch_up_cap, jitter_ms

-- fragment: plan_values
:kind, :input, :pool, :priority, :max_attempts, :backoff_ms, :backoff_cap_ms, :timeout_ms, :cron, :timezone, :every_s,
:anchor_at, :once_at, :start_at, :end_at, :overlap, :catch_up, :catch_up_cap, :jitter_ms

-- fragment: revision_columns
schedule_id, number, effective_from, state, tz_version, recorded_at

-- name: schedule_by_id
SELECT {schedule_columns}, {plan_columns} FROM schedules WHERE id = :id

-- name: schedule_by_id_locked
SELECT {schedule_columns}, {plan_columns} FROM schedules WHERE id = :id {lock:no key update}

-- name: insert_schedule
INSERT INTO schedules ({schedule_columns}, {plan_columns})
VALUES (:id, :owner_user_id, :state, :state_reason, :revision, :opened_through, :next_run_at, :fire_at, :last_run_at,
        :created_at, :updated_at, {plan_values})
ON CONFLICT (id) DO NOTHING RETURNING id

-- name: update_schedule
UPDATE schedules SET
  (owner_user_id, state, state_reason, revision, opened_through, next_run_at, fire_at, last_run_at, created_at,
   updated_at, {plan_columns})
  = (:owner_user_id, :state, :state_reason, :revision, :opened_through, :next_run_at, :fire_at, :last_run_at, :created_at,
     :updated_at, {plan_values})
WHERE id = :id

-- name: insert_revision
INSERT INTO schedule_revisions ({revision_columns}, {plan_columns})
VALUES (:schedule_id, :number, :effective_from, :state, :tz_version, :recorded_at, {plan_values})

-- name: revisions_of
SELECT {revision_columns}, {plan_columns} FROM schedule_revisions WHERE schedule_id = :schedule_id ORDER BY number

-- name: schedules_of_owner
SELECT {schedule_columns}, {plan_columns} FROM schedules
WHERE owner_user_id = :owner AND id > :after AND state <> 'deleted' ORDER BY id LIMIT :most

-- name: all_schedules
SELECT {schedule_columns}, {plan_columns} FROM schedules
WHERE id > :after AND state <> 'deleted' ORDER BY id LIMIT :most

-- name: due_schedules
SELECT {schedule_columns}, {plan_columns} FROM schedules
WHERE fire_at <= :now ORDER BY fire_at LIMIT :most {lock:no key update skip locked}

