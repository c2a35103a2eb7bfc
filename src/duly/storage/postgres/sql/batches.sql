-- Statements that take many rows, as Postgres runs them: once, each column an array.
--
-- Plans are made once and kept, most likely while the tables were small, and a queue is mostly empty when it is analysed:
-- so a statement's shape must leave the planner no choice but one index probe per row. LATERAL with a row lock, and
-- OFFSET 0 where there is none, keep a probe from being turned into a join, which would hash or walk a whole table.
-- `IS NOT DISTINCT FROM` keeps the session's index out of a lookup by id: with it, n reports met n claims pair by pair.

-- name: insert_jobs
-- columns: id kind payload key lane pool resources priority position run_at created_at state attempt max_attempts backoff_ms backoff_cap_ms timeout_ms retry_of chain
-- repeats: kind pool priority run_at created_at state attempt max_attempts backoff_ms backoff_cap_ms
-- alone: insert_job
-- Adds a job unless its id, its key or its lane's head is taken, or its pool takes none; answers what was added.
-- In lane order, so that two batches wait for each other at one place only. Its pool is kept from being removed or
-- reranked until commit; claims and ends, which only count in the pool's row, do not wait for that.
WITH open_pools AS MATERIALIZED (
  SELECT name, mode, ageing_ms FROM pools WHERE name = ANY(:pool::text[]) ORDER BY name FOR KEY SHARE
)
INSERT INTO jobs (id, kind, payload, key, lane, pool, resources, priority, rank, position, run_at, created_at, state,
                  attempt, max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain)
SELECT new.id, new.kind, new.payload, new.key, new.lane, new.pool, new.resources, new.priority,
       CASE WHEN p.ageing_ms IS NULL THEN -new.priority ELSE new.position - new.priority * p.ageing_ms * 1000 END,
       new.position, new.run_at, new.created_at, new.state, new.attempt, new.max_attempts, new.backoff_ms,
       new.backoff_cap_ms, new.timeout_ms, new.retry_of, new.chain
FROM (
  SELECT id, payload, key, lane, resources, position, timeout_ms, retry_of, chain,
         COALESCE(kind, (:kind::text[])[1]) AS kind, COALESCE(pool, (:pool::text[])[1]) AS pool,
         COALESCE(priority, (:priority::bigint[])[1]) AS priority, COALESCE(run_at, (:run_at::bigint[])[1]) AS run_at,
         COALESCE(created_at, (:created_at::bigint[])[1]) AS created_at, COALESCE(state, (:state::text[])[1]) AS state,
         COALESCE(attempt, (:attempt::bigint[])[1]) AS attempt,
         COALESCE(max_attempts, (:max_attempts::bigint[])[1]) AS max_attempts,
         COALESCE(backoff_ms, (:backoff_ms::bigint[])[1]) AS backoff_ms,
         COALESCE(backoff_cap_ms, (:backoff_cap_ms::bigint[])[1]) AS backoff_cap_ms
  FROM unnest(:id::text[], :kind::text[], :payload::text[], :key::text[], :lane::text[], :pool::text[],
              :resources::text[], :priority::bigint[], :position::bigint[], :run_at::bigint[], :created_at::bigint[],
              :state::text[], :attempt::bigint[], :max_attempts::bigint[], :backoff_ms::bigint[],
              :backoff_cap_ms::bigint[], :timeout_ms::bigint[], :retry_of::text[], :chain::text[])
       AS given(id, kind, payload, key, lane, pool, resources, priority, position, run_at, created_at, state, attempt,
                max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain)) AS new
JOIN open_pools p ON p.name = new.pool AND (p.mode <> 'draining' OR new.retry_of IS NOT NULL)
WHERE NOT EXISTS (SELECT FROM finished_jobs f WHERE f.id = new.id OFFSET 0)
ORDER BY new.lane, new.position
ON CONFLICT DO NOTHING
RETURNING id

-- name: insert_job
-- columns: id kind payload key lane pool resources priority position run_at created_at state attempt max_attempts backoff_ms backoff_cap_ms timeout_ms retry_of chain
-- As `insert_jobs`, for one: taking arrays apart costs more than adding the job.
INSERT INTO jobs (id, kind, payload, key, lane, pool, resources, priority, rank, position, run_at, created_at, state,
                  attempt, max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain)
SELECT :id, :kind, :payload, :key, :lane, :pool, :resources, :priority::bigint,
       CASE WHEN p.ageing_ms IS NULL THEN -:priority::bigint
            ELSE :position::bigint - :priority::bigint * p.ageing_ms * 1000 END,
       :position::bigint, :run_at::bigint, :created_at::bigint, :state, :attempt::bigint, :max_attempts::bigint,
       :backoff_ms::bigint, :backoff_cap_ms::bigint, :timeout_ms::bigint, :retry_of::text, :chain
FROM pools p
WHERE p.name = :pool AND (p.mode <> 'draining' OR :retry_of::text IS NOT NULL)
  AND NOT EXISTS (SELECT FROM finished_jobs f WHERE f.id = :id)
FOR KEY SHARE OF p
ON CONFLICT DO NOTHING
RETURNING id

-- name: insert_alike
-- columns: id payload position
-- Many new jobs that differ in their payloads only, without keys and lanes, into a pool that is held: nothing can be in
-- their way.
INSERT INTO jobs (id, kind, payload, pool, resources, priority, rank, position, run_at, created_at, state, attempt,
                  max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, chain)
SELECT new.id, :kind, new.payload, :pool, :resources, :priority::bigint,
       CASE WHEN :ageing_ms::bigint IS NULL THEN -:priority::bigint
            ELSE new.position - :priority::bigint * :ageing_ms::bigint * 1000 END,
       new.position, :run_at::bigint, :created_at::bigint, :state, 1, :max_attempts::bigint, :backoff_ms::bigint,
       :backoff_cap_ms::bigint, :timeout_ms::bigint, new.id
FROM unnest(:id::text[], :payload::text[], :position::bigint[]) AS new(id, payload, position)

-- name: finish
-- columns: id token status error exit_code result
-- repeats: token status
-- Only the claim's own session and token end a run; anything else changes nothing. A run that was asked to stop
-- ends as cancelled, whatever its failure was called.
WITH held AS MATERIALIZED (
  SELECT job.*, job.cancel_reason IS NOT NULL AND r.status = 'FAILED' AS stopped, r.status, r.error, r.exit_code, r.result
  FROM (
    SELECT id, COALESCE(token, (:token::bigint[])[1]) AS token, COALESCE(status, (:status::text[])[1]) AS status, error,
           exit_code, result
    FROM unnest(:id::text[], :token::bigint[], :status::text[], :error::text[], :exit_code::bigint[], :result::text[])
         AS given(id, token, status, error, exit_code, result)) AS r
  CROSS JOIN LATERAL (
    SELECT * FROM jobs WHERE id = r.id AND token = r.token AND session IS NOT DISTINCT FROM :session AND state = 'running'
    FOR UPDATE) AS job
), removed AS (
  DELETE FROM jobs WHERE id = ANY(ARRAY(SELECT id FROM held))
)
INSERT INTO finished_jobs ({finished_columns})
SELECT id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of,
       chain, session, token, started_at, :now::bigint, CASE WHEN stopped THEN 'CANCELLED' ELSE status END,
       CASE WHEN stopped THEN cancel_reason ELSE error END, exit_code, result
FROM held
RETURNING id, lane, pool, resources

-- name: finish_alike
-- columns: id
-- As `finish`, for the common batch: one claim's runs that all succeeded without a word.
WITH done AS (
  DELETE FROM jobs
  WHERE id = ANY(:id::text[]) AND token = :token AND session IS NOT DISTINCT FROM :session AND state = 'running'
  RETURNING *
)
INSERT INTO finished_jobs ({finished_columns})
SELECT id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of,
       chain, session, token, started_at, :now::bigint, :status, NULL, NULL, NULL
FROM done
RETURNING id, lane, pool, resources

-- name: already_finished
-- columns: id token
-- Reports that an earlier run of the same exchange has written.
SELECT f.id FROM unnest(:id::text[], :token::bigint[]) AS r(id, token)
CROSS JOIN LATERAL (
  SELECT id FROM finished_jobs WHERE id = r.id AND session = :session AND token = r.token OFFSET 0) AS f

-- name: void_claims
-- columns: id
-- Runs that others ended: a late report of their worker must not be taken for the one that was written.
UPDATE finished_jobs SET token = NULL WHERE id = ANY(:id::text[])

-- name: jobs_held
-- columns: id token
-- Full rows of runs that failed, for their next attempts; kept from being cancelled until they have ended.
SELECT {job_columns} FROM jobs
WHERE id = ANY(:id::text[]) AND session IS NOT DISTINCT FROM :session AND token = ANY(:token::bigint[])
  AND state = 'running'
ORDER BY id FOR UPDATE

-- name: lock_pools
-- columns: name
-- An exchange that touches several pools locks them in name order, so that no two exchanges wait for each other.
SELECT name FROM pools WHERE name = ANY(:name::text[]) ORDER BY name FOR NO KEY UPDATE

-- name: release_slots
-- columns: name freed
-- Whether jobs are parked is read off the pool's row: it may have been written while we waited for that row.
UPDATE pools SET used = used - r.freed
FROM unnest(:name::text[], :freed::bigint[]) AS r(name, freed)
WHERE pools.name = r.name
RETURNING pools.name, pools.used + r.freed + pools.tickets >= pools.slots,
          pools.parked > 0

-- name: claim
-- columns: pool wanted
-- The next jobs in each pool's order, as many as it has room for. One with extra resources is held until it has them.
-- Answers at least one row while the session lives. The session's and the pools' rows are locked before any job is
-- looked at. The rows are picked and locked into an array, because joining them made the planner walk the whole primary
-- key; by their places, which saves looking each up again. One that was changed at this very moment is left for the next
-- claim: its new place is not ours to see. One that is locked is passed over: whoever ends it may wait for our pools.
WITH alive AS (
  SELECT id FROM sessions WHERE id = :session FOR NO KEY UPDATE
), room AS (
  SELECT p.name, LEAST(w.wanted, p.slots - p.used - p.tickets) AS free
  FROM unnest(:pool::text[], :wanted::bigint[]) AS w(pool, wanted) JOIN pools p ON p.name = w.pool
  WHERE p.mode <> 'paused' AND EXISTS (SELECT FROM alive)
  ORDER BY p.name FOR NO KEY UPDATE OF p
), claimed AS (
  UPDATE jobs SET
    state = CASE WHEN resources IS NULL THEN :state ELSE 'claimed' END,
    started_at = CASE WHEN resources IS NULL AND :state = 'running' THEN :now::bigint END,
    session = :session, token = :token
  WHERE ctid = ANY(ARRAY(
    SELECT picked.ctid FROM room CROSS JOIN LATERAL (
      SELECT ctid FROM jobs WHERE pool = room.name AND state = 'ready' ORDER BY {in_order}
      LIMIT GREATEST(room.free, 0) FOR NO KEY UPDATE SKIP LOCKED) AS picked))
  RETURNING {claimed_columns}
), counted AS (
  UPDATE pools SET used = used + taken.count
  FROM (SELECT pool, count(*) AS count FROM claimed GROUP BY pool) AS taken WHERE pools.name = taken.pool
), rested AS (
  UPDATE sessions SET busy = busy - :ended + (SELECT count(*) FROM claimed WHERE state = 'running')
  WHERE id IN (SELECT id FROM alive)
)
SELECT claimed.* FROM alive LEFT JOIN claimed ON true

-- name: start
-- columns: id token
-- A held job enters its handler.
UPDATE jobs SET state = 'running', started_at = :now::bigint
WHERE id = ANY(ARRAY(
  SELECT held.id FROM unnest(:id::text[], :token::bigint[]) AS r(id, token) CROSS JOIN LATERAL (
    SELECT id FROM jobs WHERE id = r.id AND token = r.token AND session IS NOT DISTINCT FROM :session AND state = 'claimed'
    FOR NO KEY UPDATE) AS held))
RETURNING {claimed_columns}

-- name: still_held
-- columns: id token
-- Held jobs whose claims are still good, and stay so until commit.
SELECT jobs.id FROM unnest(:id::text[], :token::bigint[]) AS r(id, token)
JOIN jobs ON jobs.id = r.id AND jobs.session = :session AND jobs.token = r.token AND jobs.state = 'claimed'
FOR NO KEY UPDATE OF jobs

-- name: started_before
-- columns: id token
-- Held jobs that an earlier run of the same exchange has started.
WITH started AS (
  SELECT jobs.* FROM unnest(:id::text[], :token::bigint[]) AS r(id, token)
  JOIN jobs ON jobs.id = r.id AND jobs.session = :session AND jobs.token = r.token AND jobs.state = 'running'
)
SELECT {claimed_columns} FROM started

-- name: give_back
-- columns: id token
-- A claim whose handler was never entered returns to its place.
UPDATE jobs SET state = 'ready', session = NULL, token = NULL, started_at = NULL
WHERE id = ANY(ARRAY(
  SELECT held.id FROM unnest(:id::text[], :token::bigint[]) AS r(id, token) CROSS JOIN LATERAL (
    SELECT id FROM jobs WHERE id = r.id AND token = r.token AND session IS NOT DISTINCT FROM :session
    FOR NO KEY UPDATE) AS held))
RETURNING id, cancel_reason

-- name: set_state
-- columns: id
UPDATE jobs SET state = :state, parked_on = NULL WHERE id = ANY(:id::text[]) RETURNING id

-- name: unpark
-- columns: name
-- As many parked jobs as the resource has room for try again.
UPDATE jobs SET state = 'ready', parked_on = NULL
WHERE id = ANY(ARRAY(
  SELECT best.id FROM pools p CROSS JOIN LATERAL (
    SELECT id FROM jobs WHERE parked_on = p.name AND state = 'parked' ORDER BY {in_order}
    LIMIT GREATEST(p.slots - p.used - p.tickets, 0) FOR UPDATE) AS best
  WHERE p.name = ANY(:name::text[])))
RETURNING pool

-- name: count_parked
-- columns: name
UPDATE pools SET parked = (SELECT count(*) FROM jobs WHERE parked_on = pools.name AND state = 'parked')
WHERE name = ANY(:name::text[])

-- name: promote
-- columns: lane
-- A lane without a head gets its best waiting job as head. The row is locked while it is picked: a waiting job that
-- is cancelled at the same moment is passed over, not promoted into nothing. Most lanes have nothing waiting, so that is
-- looked at first; and a lane that has a head is left alone, because two who cancel in it would lock each other's jobs.
UPDATE jobs SET state = 'ready'
WHERE id = ANY(ARRAY(
  SELECT best.id FROM unnest(:lane::text[]) AS freed(lane) CROSS JOIN LATERAL (
    SELECT id FROM jobs WHERE lane = freed.lane AND state = 'waiting' ORDER BY {in_order} LIMIT 1 FOR UPDATE) AS best
  WHERE EXISTS (SELECT FROM jobs w WHERE w.lane = freed.lane AND w.state = 'waiting' OFFSET 0)
    AND NOT EXISTS (
      SELECT FROM jobs head WHERE head.lane = freed.lane AND head.state NOT IN ('scheduled', 'waiting') OFFSET 0)))
RETURNING lane, pool

-- name: hold_heads
-- columns: lane
-- Lanes that have a head, which cannot go before we commit: ending a job waits for this lock, claiming it does not.
SELECT lane FROM jobs
WHERE lane = ANY(:lane::text[]) AND state NOT IN ('scheduled', 'waiting') ORDER BY lane FOR KEY SHARE

-- name: misordered
-- columns: lane
-- Lanes in which a waiting job is better than the unclaimed head.
SELECT head.lane FROM jobs head
WHERE head.lane = ANY(:lane::text[]) AND head.state IN ('ready', 'parked') AND EXISTS (
  SELECT FROM jobs w WHERE w.lane = head.lane AND w.state = 'waiting'
    AND (w.rank, w.position, w.created_at, w.id) < (head.rank, head.position, head.created_at, head.id) OFFSET 0)

-- name: set_position
-- columns: id position
UPDATE jobs SET position = r.position FROM unnest(:id::text[], :position::bigint[]) AS r(id, position)
WHERE jobs.id = r.id
