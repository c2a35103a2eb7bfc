-- What readiness and metrics ask for. Counted along indexes that are there anyway: none is kept for counting.

-- name: vitals
SELECT (SELECT alive_at FROM coverage ORDER BY started_at DESC LIMIT 1),
       (SELECT min(fire_at) FROM schedules WHERE fire_at IS NOT NULL),
       (SELECT count(*) FROM schedules WHERE fire_at IS NOT NULL AND fire_at < :overdue)

-- name: longest_overdue
SELECT id FROM schedules WHERE fire_at IS NOT NULL AND fire_at < :overdue ORDER BY fire_at, id LIMIT :most

-- name: count_schedules
SELECT 'active', (SELECT count(*) FROM schedules) - (SELECT count(*) FROM schedules WHERE state <> 'active')
UNION ALL
SELECT state, count(*) FROM schedules WHERE state <> 'active' GROUP BY state

-- name: count_jobs
SELECT pool, state, count(*), min(run_at) FROM jobs WHERE state = 'ready' GROUP BY pool, state
UNION ALL
SELECT pool, state, count(*), NULL FROM jobs WHERE state = 'waiting' GROUP BY pool, state
UNION ALL
SELECT pool, state, count(*), NULL FROM jobs WHERE state IN ('scheduled', 'backoff') GROUP BY pool, state
UNION ALL
SELECT pool, state, count(*), NULL FROM jobs WHERE state = 'parked' GROUP BY pool, state
UNION ALL
SELECT pool, state, count(*), NULL FROM jobs WHERE session IS NOT NULL GROUP BY pool, state

-- name: count_runs_in_flight
SELECT count(*) FROM schedule_runs WHERE completed_at IS NULL

-- name: count_sessions
SELECT count(*) FROM sessions
