-- Statements that take many rows, as SQLite runs them: once for each row, in order.

-- name: insert_jobs
-- columns: id kind payload key lane pool resources priority position run_at created_at state attempt max_attempts backoff_ms backoff_cap_ms timeout_ms retry_of chain
-- Adds a job unless its id, its key or its lane's head is taken, or its pool takes none; answers what was added.
INSERT INTO jobs (id, kind, payload, key, lane, pool, resources, priority, rank, position, run_at, created_at, state,
                  attempt, max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain)
SELECT :id, :kind, :payload, :key, :lane, :pool, :resources, :priority,
       CASE WHEN ageing_ms IS NULL THEN -:priority ELSE :position - :priority * ageing_ms * 1000 END,
       :position, :run_at, :created_at, :state, :attempt, :max_attempts, :backoff_ms, :backoff_cap_ms, :timeout_ms,
       :retry_of, :chain
FROM pools
WHERE name = :pool AND (mode <> 'draining' OR :retry_of IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM finished_jobs f WHERE f.id = :id)
ON CONFLICT DO NOTHING
RETURNING id

-- name: insert_alike
-- columns: id payload position
-- Many new jobs that differ in their payloads only, without keys and lanes, into a pool that is held: nothing can be in
-- their way.
INSERT INTO jobs (id, kind, payload, pool, resources, priority, rank, position, run_at, created_at, state, attempt,
                  max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, chain)
VALUES (:id, :kind, :payload, :pool, :resources, :priority,
        CASE WHEN :ageing_ms IS NULL THEN -:priority ELSE :position - :priority * :ageing_ms * 1000 END,
        :position, :run_at, :created_at, :state, 1, :max_attempts, :backoff_ms, :backoff_cap_ms, :timeout_ms, :id)

-- name: record_finished
-- columns: id token status error exit_code result
-- A run that was asked to stop ends as cancelled, whatever its failure was called.
INSERT INTO finished_jobs ({finished_columns})
SELECT id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of,
       chain, session, token, started_at, :now,
       CASE WHEN cancel_reason IS NOT NULL AND :status = 'FAILED' THEN 'CANCELLED' ELSE :status END,
       CASE WHEN cancel_reason IS NOT NULL AND :status = 'FAILED' THEN cancel_reason ELSE :error END,
       :exit_code, :result
FROM jobs WHERE id = :id AND session = :session AND token = :token AND state = 'running'

-- name: finish
-- columns: id token
-- Only the claim's own session and token end a run; anything else changes nothing.
DELETE FROM jobs WHERE id = :id AND session = :session AND token = :token AND state = 'running'
RETURNING id, lane, pool, resources

-- name: record_alike
-- As `record_finished`, for the common batch: one claim's runs that all succeeded without a word. `ids` is a JSON array:
-- one statement for all of them saves starting one for each. The plus keeps the session's index out of it.
INSERT INTO finished_jobs ({finished_columns})
SELECT id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of,
       chain, session, token, started_at, :now, :status, NULL, NULL, NULL
FROM jobs
WHERE id IN (SELECT value FROM json_each(:ids)) AND +session = :session AND token = :token AND state = 'running'

-- name: finish_alike
-- As `finish`, for the same batch.
DELETE FROM jobs
WHERE id IN (SELECT value FROM json_each(:ids)) AND +session = :session AND token = :token AND state = 'running'
RETURNING id, lane, pool, resources

-- name: already_finished
-- columns: id token
-- Reports that an earlier run of the same exchange has written.
SELECT id FROM finished_jobs WHERE id = :id AND session = :session AND token = :token

-- name: void_claims
-- columns: id
-- Runs that others ended: a late report of their worker must not be taken for the one that was written.
UPDATE finished_jobs SET token = NULL WHERE id = :id

-- name: jobs_held
-- columns: id token
-- Full rows of runs that failed, for their next attempts.
SELECT {job_columns} FROM jobs WHERE id = :id AND session = :session AND token = :token AND state = 'running'

-- name: release_slots
-- columns: name freed
UPDATE pools SET used = used - :freed WHERE name = :name
RETURNING name, used + :freed + tickets >= slots, parked > 0

-- name: rest_session
-- Frees the executors whose runs ended; nothing is answered if the session is gone.
UPDATE sessions SET busy = busy - :ended WHERE id = :session RETURNING id

-- name: claim
-- columns: pool wanted
-- The next jobs in the pool's order, as many as the pool has room for. One with extra resources is held until it has them.
UPDATE jobs SET
  state = CASE WHEN resources IS NULL THEN :state ELSE 'claimed' END,
  started_at = CASE WHEN resources IS NULL AND :state = 'running' THEN :now END,
  session = :session, token = :token
WHERE id IN (
  SELECT id FROM jobs WHERE pool = :pool AND state = 'ready' ORDER BY {in_order}
  LIMIT (SELECT max(0, min(:wanted, slots - used - tickets)) FROM pools WHERE name = :pool AND mode <> 'paused'
         UNION ALL SELECT 0 LIMIT 1))
RETURNING {claimed_columns}

-- name: count_claimed
-- columns: name taken
UPDATE pools SET used = used + :taken WHERE name = :name

-- name: start
-- columns: id token
-- A held job enters its handler.
UPDATE jobs SET state = 'running', started_at = :now
WHERE id = :id AND session = :session AND token = :token AND state = 'claimed'
RETURNING {claimed_columns}

-- name: still_held
-- columns: id token
-- Held jobs whose claims are still good, and stay so until commit.
SELECT id FROM jobs WHERE id = :id AND session = :session AND token = :token AND state = 'claimed'

-- name: started_before
-- columns: id token
-- Held jobs that an earlier run of the same exchange has started.
SELECT {claimed_columns} FROM jobs WHERE id = :id AND session = :session AND token = :token AND state = 'running'

-- name: give_back
-- columns: id token
-- A claim whose handler was never entered returns to its place.
UPDATE jobs SET state = 'ready', session = NULL, token = NULL, started_at = NULL
WHERE id = :id AND session = :session AND token = :token
RETURNING id, cancel_reason

-- name: set_state
-- columns: id
UPDATE jobs SET state = :state, parked_on = NULL WHERE id = :id RETURNING id

-- name: unpark
-- columns: name
-- As many parked jobs as the resource has room for try again.
UPDATE jobs SET state = 'ready', parked_on = NULL
WHERE id IN (SELECT id FROM jobs WHERE parked_on = :name AND state = 'parked' ORDER BY {in_order}
             LIMIT (SELECT max(0, slots - used - tickets) FROM pools WHERE name = :name))
RETURNING pool

-- name: count_parked
-- columns: name
UPDATE pools SET parked = (SELECT count(*) FROM jobs WHERE parked_on = :name AND state = 'parked') WHERE name = :name

-- name: promote
-- columns: lane
-- A lane without a head gets its best waiting job as head.
UPDATE jobs SET state = 'ready'
WHERE id = (SELECT id FROM jobs WHERE lane = :lane AND state = 'waiting' ORDER BY {in_order} LIMIT 1)
  AND NOT EXISTS (SELECT 1 FROM jobs head WHERE head.lane = :lane AND head.state NOT IN ('scheduled', 'waiting'))
RETURNING lane, pool

-- name: hold_heads
-- columns: lane
-- Lanes that have a head, which cannot go before we commit.
SELECT lane FROM jobs WHERE lane = :lane AND state NOT IN ('scheduled', 'waiting')

-- name: misordered
-- columns: lane
-- Lanes in which a waiting job is better than the unclaimed head. The first condition on its state says nothing new but
-- names the index, without which every live job is looked at.
SELECT head.lane FROM jobs head
WHERE head.lane = :lane AND head.state NOT IN ('scheduled', 'waiting') AND head.state IN ('ready', 'parked') AND EXISTS (
  SELECT 1 FROM jobs w WHERE w.lane = :lane AND w.state = 'waiting'
    AND (w.rank, w.position, w.created_at, w.id) < (head.rank, head.position, head.created_at, head.id))

-- name: set_position
-- columns: id position
UPDATE jobs SET position = :position WHERE id = :id
