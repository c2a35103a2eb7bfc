-- The ledger as the audit reads it: in windows, by keys, on no more than one snapshot.

-- name: audited_schedules
SELECT {schedule_columns}, {plan_columns} FROM schedules WHERE id > :after ORDER BY id LIMIT :most

-- name: audited_schedules_of_owner
SELECT {schedule_columns}, {plan_columns} FROM schedules
WHERE owner_user_id = :owner AND id > :after ORDER BY id LIMIT :most

-- name: audited_revisions
SELECT {revision_columns}, {plan_columns} FROM schedule_revisions
WHERE (schedule_id, number) > (:schedule_id, :number) AND schedule_id <= :last
ORDER BY schedule_id, number LIMIT :most

-- fragment: jobs_of_runs
jobs

-- name: audited_runs
-- With the live end of each run's chain of jobs, and how many of the chain completed. A run names its chain's first job.
WITH shown AS (
  SELECT {run_columns} FROM schedule_runs
  WHERE (schedule_id, scheduled_for, own_key, id) > (:schedule_id, :scheduled_for, :own_key, :id)
    AND schedule_id <= :last AND scheduled_for > :since
  ORDER BY schedule_id, scheduled_for, own_key, id LIMIT :most
)
SELECT shown.*, live.id, live.session, sessions.seen_at, sessions.lease,
       (SELECT count(*) FROM finished_jobs f WHERE f.id = shown.job_id AND f.status = 'COMPLETED')
       + (SELECT count(*) FROM finished_jobs f
          WHERE f.chain = shown.job_id AND f.retry_of IS NOT NULL AND f.status = 'COMPLETED')
FROM shown
LEFT JOIN {jobs_of_runs} live ON live.id = (
  SELECT id FROM {jobs_of_runs} WHERE id = shown.job_id
  UNION ALL
  SELECT id FROM {jobs_of_runs} WHERE chain = shown.job_id AND retry_of IS NOT NULL
  LIMIT 1)
LEFT JOIN sessions ON sessions.id = live.session
ORDER BY shown.schedule_id, shown.scheduled_for, shown.own_key, shown.id

-- name: audited_gaps
SELECT {gap_columns} FROM schedule_gaps
WHERE (schedule_id, first_slot) > (:schedule_id, :first_slot) AND schedule_id <= :last AND last_slot > :since
ORDER BY schedule_id, first_slot LIMIT :most

-- name: audited_arrears
SELECT {arrears_columns} FROM schedule_arrears
WHERE (schedule_id, first_slot) > (:schedule_id, :first_slot) AND schedule_id <= :last AND last_slot > :since
ORDER BY schedule_id, first_slot LIMIT :most

-- name: audited_jobs_through
SELECT max(id) FROM (SELECT id FROM finished_jobs WHERE id > :after ORDER BY id LIMIT :most) AS looked_at

-- name: stray_jobs
SELECT f.id, r.id, r.schedule_id, r.scheduled_for, r.job_id
FROM finished_jobs f JOIN schedule_runs r ON r.id = f.ledger_run
WHERE f.id > :after AND f.id <= :through AND f.status = 'COMPLETED' AND f.chain IS DISTINCT FROM r.job_id
ORDER BY f.id

-- name: last_gap_through
SELECT {gap_columns} FROM schedule_gaps
WHERE schedule_id = :schedule_id AND first_slot <= :through ORDER BY first_slot DESC LIMIT 1
