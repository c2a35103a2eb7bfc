-- The ledger: runs, gaps, arrears, coverage, and runs that are to be revoked.

-- fragment: run_columns
id, schedule_id, owner_user_id, revision, kind, own_key, scheduled_for, fire_at, opened_at, status, reason, detail, job_id,
run_id, trace_id, attempt_count, started_at, completed_at, error_message

-- fragment: gap_columns
schedule_id, first_slot, last_slot, slots, reason, revision, recorded_at

-- fragment: arrears_columns
schedule_id, first_slot, next_slot, last_slot, slots, due_at, every_us, revision

-- fragment: oldest_owed
-- What a schedule missed in one outage comes before what it missed in a later one.
NOT EXISTS (SELECT 1 FROM schedule_arrears older
            WHERE older.schedule_id = a.schedule_id AND older.first_slot < a.first_slot)

-- fragment: as_its_job
status = CASE f.status WHEN 'COMPLETED' THEN 'success' WHEN 'FAILED' THEN 'error' WHEN 'SKIPPED' THEN 'skipped'
                       ELSE 'cancelled' END,
  error_message = CASE WHEN f.status = 'FAILED' THEN f.error END,
  detail = CASE WHEN f.status IN ('SKIPPED', 'CANCELLED') THEN f.error ELSE schedule_runs.detail END,
  completed_at = f.finished_at

-- name: run_by_id
SELECT {run_columns} FROM schedule_runs WHERE id = :id

-- name: run_of_slot
SELECT {run_columns} FROM schedule_runs
WHERE schedule_id = :schedule_id AND scheduled_for = :scheduled_for AND own_key = ''

-- name: runs_by_key
SELECT {run_columns} FROM schedule_runs
WHERE schedule_id = :schedule_id AND own_key = :own_key AND own_key <> '' ORDER BY scheduled_for

-- name: runs_of_schedule
SELECT {run_columns} FROM schedule_runs
WHERE schedule_id = :schedule_id AND scheduled_for < :before AND scheduled_for >= :since
ORDER BY scheduled_for DESC, own_key DESC LIMIT :most

-- name: gaps_of
SELECT {gap_columns} FROM schedule_gaps WHERE schedule_id = :schedule_id AND last_slot >= :since ORDER BY first_slot

-- name: arrears_of
SELECT {arrears_columns} FROM schedule_arrears WHERE schedule_id = :schedule_id ORDER BY first_slot

-- name: due_arrears
-- With their schedules: whoever changes one locks it first, and the two must not wait for each other.
SELECT schedule_id, first_slot, next_slot, last_slot, slots, due_at, every_us, a.revision
FROM schedule_arrears a JOIN schedules s ON s.id = a.schedule_id
WHERE due_at <= :now AND {oldest_owed} ORDER BY due_at LIMIT :most {lock:no key update skip locked}

-- name: lock_coverage
-- One heartbeat at a time.
SELECT 1

-- name: last_span
SELECT started_at, alive_at FROM coverage ORDER BY started_at DESC LIMIT 1

-- name: save_span
INSERT INTO coverage (started_at, alive_at) VALUES (:started_at, :alive_at)
ON CONFLICT (started_at) DO UPDATE SET alive_at = excluded.alive_at

-- name: fill_silence
-- The clock was set back to where nobody had been: from there to the next span it is a span of its own, so that what was
-- an outage until then can still be told from the rows.
INSERT INTO coverage (started_at, alive_at)
SELECT CAST(:now AS bigint), (SELECT min(started_at) FROM coverage WHERE started_at > :now)
WHERE NOT EXISTS (SELECT 1 FROM coverage WHERE started_at <= :now AND alive_at >= :now)

-- name: spans_since
SELECT started_at, alive_at FROM coverage
WHERE started_at >= COALESCE(
  (SELECT started_at FROM coverage WHERE alive_at < :since ORDER BY started_at DESC LIMIT 1), 0)
ORDER BY started_at

-- name: revoke_later
-- Who was asked to stop before keeps the earlier time.
INSERT INTO revocations (job_id, due_at, reason) VALUES (:job_id, :due_at, :reason) ON CONFLICT (job_id) DO NOTHING

-- name: due_revocations
SELECT job_id, reason FROM revocations WHERE due_at <= :now ORDER BY due_at LIMIT :most {lock:update skip locked}

-- name: agenda
SELECT (SELECT min(fire_at) FROM schedules WHERE fire_at IS NOT NULL),
       (SELECT min(due_at) FROM schedule_arrears a WHERE {oldest_owed}),
       (SELECT min(due_at) FROM revocations)
