-- Sessions: the leases of live worker processes.

-- name: open_session
INSERT INTO sessions (id, name, capacity, lease, era, expires_at, started_at, seen_at, kinds)
VALUES (:id, :name, :capacity, :lease, :era, CAST(:lease_now AS bigint) + CAST(:lease AS bigint), :now, :now, :kinds)
ON CONFLICT (id) DO NOTHING

-- name: live_kinds
SELECT DISTINCT kinds FROM sessions WHERE era = :era AND expires_at > :lease_now

-- name: renew_session
-- Nothing is renewed once the session was rescued.
UPDATE sessions SET expires_at = :lease_now + lease, seen_at = :now WHERE id = :id RETURNING id

-- name: lock_session
SELECT id FROM sessions WHERE id = :id {lock}

-- name: hold_session
-- It cannot end before we commit; its claims go on.
SELECT id FROM sessions WHERE id = :id {lock:key share}

-- name: close_session
DELETE FROM sessions WHERE id = :id

-- name: expired_sessions
-- Leases that ran out, or that a clock of another boot wrote.
SELECT id FROM sessions WHERE era <> :era OR expires_at <= :lease_now
ORDER BY expires_at LIMIT :most {lock:update skip locked}

-- name: next_expiry
-- When the next lease runs out, if nobody renews it; one of another boot has run out already.
SELECT min(CASE WHEN era = :era THEN expires_at ELSE 0 END) FROM sessions

-- name: count_ended
-- Executors of a session that became free without a claim.
UPDATE sessions SET busy = busy - :ended WHERE id = :id

-- name: count_started
UPDATE sessions SET busy = busy + :started WHERE id = :id

-- name: jobs_of_session
SELECT {job_columns} FROM jobs WHERE session = :session ORDER BY id LIMIT :most

-- name: jobs_of_no_session
-- Should never exist; found and rescued all the same.
SELECT DISTINCT session FROM jobs
WHERE session IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = jobs.session)

-- name: cancelled_in_session
SELECT id, cancel_reason FROM jobs WHERE session = :session AND cancel_reason IS NOT NULL

-- name: pools_with_work
SELECT name FROM pools
WHERE mode <> 'paused' AND used + tickets < slots
  AND EXISTS (SELECT 1 FROM jobs WHERE jobs.pool = pools.name AND jobs.state = 'ready')
