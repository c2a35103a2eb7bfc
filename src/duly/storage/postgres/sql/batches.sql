-- Statements that take many rows, as Postgres runs them: once, each column an array.
--
-- Plans are made once and kept, most likely while the tables were small, and a queue is mostly empty when it is analysed:
-- so a statement's shape must leave the planner no choice but one index probe per row. LATERAL with a row lock, and
-- OFFSET 0 where there is none, keep a probe from being turned into a join, which would hash or walk a whole table.
-- `IS NOT DISTINCT FROM` keeps the session's index out of a lookup by id: with it, n reports met n claims pair by pair.
-- An update joined to its rows names their ids once more: without that it may walk the whole primary key. And the status,
-- which says that a run has not ended, keeps the index of runs in flight, which asks for `completed_at`, out of a lookup by
-- id. That index does so because a run that starts then changes no index at all.

-- name: insert_jobs
-- columns: id kind payload key lane pool resources priority position retry_of run_at created_at state attempt max_attempts backoff_ms backoff_cap_ms timeout_ms chain ledger_run member
-- repeats: kind pool priority run_at created_at state attempt max_attempts backoff_ms backoff_cap_ms
-- alone: insert_job
-- Adds a job unless its id, its key or its lane's head is taken, or its pool takes none; answers what was added.
-- In lane order, so that two batches wait for each other at one place only. Its pool is kept from being removed or
-- reranked until commit; claims and ends, which only count in the pool's row, do not wait for that.
WITH open_pools AS MATERIALIZED (
  SELECT name, mode, ageing_ms, per_owner FROM pools WHERE name = ANY(:pool::text[]) ORDER BY name FOR KEY SHARE
)
INSERT INTO jobs (id, kind, payload, key, lane, pool, resources, priority, rank, position, run_at, created_at, state,
                  attempt, max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain, ledger_run, member, share)
SELECT new.id, new.kind, new.payload, new.key, new.lane, new.pool, new.resources, new.priority,
       CASE WHEN p.ageing_ms IS NULL THEN -new.priority ELSE new.position - new.priority * p.ageing_ms * 1000 END,
       new.position, new.run_at, new.created_at, new.state, new.attempt, new.max_attempts, new.backoff_ms,
       new.backoff_cap_ms, new.timeout_ms, new.retry_of, new.chain, new.ledger_run, new.member,
       CASE WHEN p.per_owner IS NULL THEN NULL ELSE COALESCE(
         (SELECT owner_user_id FROM job_origins WHERE chain_id = new.chain),
         (SELECT owner_user_id FROM schedule_runs WHERE id = new.ledger_run), split_part(new.lane, '/', 1), '') END
FROM (
  SELECT id, payload, key, lane, resources, position, timeout_ms, retry_of, chain, ledger_run, member,
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
              :backoff_cap_ms::bigint[], :timeout_ms::bigint[], :retry_of::text[], :chain::text[], :ledger_run::text[],
              :member::text[])
       AS given(id, kind, payload, key, lane, pool, resources, priority, position, run_at, created_at, state, attempt,
                max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain, ledger_run, member)) AS new
JOIN open_pools p ON p.name = new.pool AND (p.mode <> 'draining' OR new.retry_of IS NOT NULL OR new.member IS NOT NULL)
WHERE NOT EXISTS (SELECT FROM finished_jobs f WHERE f.id = new.id OFFSET 0)
ORDER BY new.lane, new.position
ON CONFLICT DO NOTHING
RETURNING id

-- fragment: insert_one
INSERT INTO jobs (id, kind, payload, key, lane, pool, resources, priority, rank, position, run_at, created_at, state,
                  attempt, max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain, ledger_run, member, share)
SELECT :id, :kind, :payload, :key, :lane::text, :pool, :resources, :priority::bigint,
       CASE WHEN p.ageing_ms IS NULL THEN -:priority::bigint
            ELSE :position::bigint - :priority::bigint * p.ageing_ms * 1000 END,
       :position::bigint, :run_at::bigint, :created_at::bigint, :state, :attempt::bigint, :max_attempts::bigint,
       :backoff_ms::bigint, :backoff_cap_ms::bigint, :timeout_ms::bigint, :retry_of::text, :chain::text,
       :ledger_run::text, :member::text,
       CASE WHEN p.per_owner IS NULL THEN NULL ELSE COALESCE(
         (SELECT owner_user_id FROM job_origins WHERE chain_id = :chain::text),
         (SELECT owner_user_id FROM schedule_runs WHERE id = :ledger_run::text), split_part(:lane::text, '/', 1), '') END
FROM pools p
WHERE p.name = :pool AND (p.mode <> 'draining' OR :retry_of::text IS NOT NULL OR :member::text IS NOT NULL)
  AND NOT EXISTS (SELECT FROM finished_jobs f WHERE f.id = :id)
FOR KEY SHARE OF p
ON CONFLICT DO NOTHING
RETURNING id

-- name: insert_job
-- columns: id kind payload key lane pool resources priority position retry_of run_at created_at state attempt max_attempts backoff_ms backoff_cap_ms timeout_ms chain ledger_run member
-- telling: insert_job_telling
-- As `insert_jobs`, for one: taking arrays apart costs more than adding the job.
{insert_one}

-- name: insert_job_telling
-- columns: id kind payload key lane pool resources priority position retry_of run_at created_at state attempt max_attempts backoff_ms backoff_cap_ms timeout_ms chain ledger_run member
-- The same, and its commit tells whoever listens.
WITH added AS (
  {insert_one}
)
SELECT added.id FROM added CROSS JOIN pg_notify('duly', :hint) AS told

-- name: insert_alike
-- columns: id payload position
-- Many new jobs that differ in their payloads only, without keys and lanes: nothing but the pool can be in their way.
-- Answers nothing if that takes none; else it is held as by `insert_jobs`.
WITH open_pool AS MATERIALIZED (
  SELECT name, ageing_ms, per_owner FROM pools WHERE name = :pool AND mode <> 'draining' FOR KEY SHARE
), added AS (
  INSERT INTO jobs (id, kind, payload, pool, priority, rank, position, run_at, created_at, state, attempt,
                    max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, chain, share)
  SELECT new.id, :kind, new.payload, p.name, :priority::bigint,
         CASE WHEN p.ageing_ms IS NULL THEN -:priority::bigint
              ELSE new.position - :priority::bigint * p.ageing_ms * 1000 END,
         new.position, :run_at::bigint, :created_at::bigint, :state, 1, :max_attempts::bigint, :backoff_ms::bigint,
         :backoff_cap_ms::bigint, :timeout_ms::bigint, new.id, CASE WHEN p.per_owner IS NOT NULL THEN '' END
  FROM open_pool p, unnest(:id::text[], :payload::text[], :position::bigint[]) AS new(id, payload, position)
)
SELECT name FROM open_pool

-- name: finish
-- columns: id token status error exit_code result retryable
-- repeats: token status
-- Only the claim's own session and token end a run; anything else changes nothing. A run that was asked to stop
-- ends as cancelled, whatever its failure was called.
WITH held AS MATERIALIZED (
  SELECT job.*, job.cancel_reason IS NOT NULL AND r.status = 'FAILED' AS stopped, r.status, r.error, r.exit_code, r.result,
         r.retryable
  FROM (
    SELECT id, COALESCE(token, (:token::bigint[])[1]) AS token, COALESCE(status, (:status::text[])[1]) AS status, error,
           exit_code, result, retryable
    FROM unnest(:id::text[], :token::bigint[], :status::text[], :error::text[], :exit_code::bigint[], :result::text[],
                :retryable::bigint[])
         AS given(id, token, status, error, exit_code, result, retryable)) AS r
  CROSS JOIN LATERAL (
    SELECT * FROM jobs WHERE id = r.id AND token = r.token AND session IS NOT DISTINCT FROM :session AND state = 'running'
    FOR UPDATE) AS job
), removed AS (
  DELETE FROM jobs WHERE id = ANY(ARRAY(SELECT id FROM held))
), recorded AS (
  INSERT INTO finished_jobs ({finished_columns}, owner_user_id)
  SELECT id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of,
         chain, session, token, started_at, :now::bigint, CASE WHEN stopped THEN 'CANCELLED' ELSE status END,
         CASE WHEN stopped THEN cancel_reason ELSE error END, exit_code, result, ledger_run, backoff_ms,
         backoff_cap_ms, timeout_ms, retryable, {owner_of_ended}
  FROM held
)
SELECT id, lane, pool, resources, ledger_run, member FROM held

-- name: finish_alike
-- columns: id
-- As `finish`, for the common batch: one claim's runs that all succeeded without a word.
WITH done AS (
  DELETE FROM jobs
  WHERE id = ANY(:id::text[]) AND token = :token AND session IS NOT DISTINCT FROM :session AND state = 'running'
  RETURNING *
), recorded AS (
  INSERT INTO finished_jobs ({finished_columns}, owner_user_id)
  SELECT id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of,
         chain, session, token, started_at, :now::bigint, :status, NULL, NULL, NULL, ledger_run,
         backoff_ms, backoff_cap_ms, timeout_ms, NULL, {owner_of_ended}
  FROM done
)
SELECT id, lane, pool, resources, ledger_run, member FROM done

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
RETURNING pools.name, pools.used + r.freed + pools.tickets >= pools.slots OR pools.per_owner IS NOT NULL,
          pools.parked > 0

-- name: claim
-- columns: pool wanted
-- alone: claim_in_one_pool
-- The next jobs in each pool's order, as many as it has room for. One with extra resources is held until it has them.
-- Answers at least one row while the session lives. The session's and the pools' rows are locked before any job is
-- looked at. The rows are picked and locked into an array, because joining them made the planner walk the whole primary
-- key; by their places, which saves looking each up again. One that was changed at this very moment is left for the next
-- claim: its new place is not ours to see. One that is locked is passed over: whoever ends it may wait for our pools.
-- Pools with a limit per owner are left alone; a row without an id names each: `claim_by_share` them.
WITH alive AS (
  SELECT id FROM sessions WHERE id = :session FOR NO KEY UPDATE
), room AS (
  SELECT p.name, LEAST(w.wanted, p.slots - p.used - p.tickets) AS free
  FROM unnest(:pool::text[], :wanted::bigint[]) AS w(pool, wanted) JOIN pools p ON p.name = w.pool
  WHERE p.mode <> 'paused' AND p.per_owner IS NULL AND EXISTS (SELECT FROM alive)
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
), begun AS (
  UPDATE schedule_runs SET status = 'running', started_at = COALESCE(started_at, :now), attempt_count = attempt_count + 1
  WHERE id = ANY(ARRAY(SELECT ledger_run FROM claimed WHERE state = 'running' AND ledger_run IS NOT NULL))
    AND status IN ('pending', 'running')
)
SELECT claimed.* FROM alive LEFT JOIN claimed ON true
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM pools WHERE name = ANY(:pool::text[]) AND per_owner IS NOT NULL AND EXISTS (SELECT FROM alive)

-- name: claim_in_one_pool
-- columns: pool wanted
-- As `claim`, for the common case: half the plan, which a server that was idle has to fetch back into its caches. One
-- that takes nothing writes nothing, so a hint too many costs no commit.
WITH alive AS (
  SELECT id FROM sessions WHERE id = :session FOR NO KEY UPDATE
), room AS (
  SELECT CASE WHEN per_owner IS NULL THEN LEAST(:wanted::bigint, slots - used - tickets) END AS free FROM pools
  WHERE name = :pool AND mode <> 'paused' AND EXISTS (SELECT FROM alive) FOR NO KEY UPDATE
), claimed AS (
  UPDATE jobs SET
    state = CASE WHEN resources IS NULL THEN :state ELSE 'claimed' END,
    started_at = CASE WHEN resources IS NULL AND :state = 'running' THEN :now::bigint END,
    session = :session, token = :token
  WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM jobs WHERE pool = :pool AND state = 'ready' ORDER BY {in_order}
    LIMIT GREATEST((SELECT free FROM room), 0) FOR NO KEY UPDATE SKIP LOCKED))
  RETURNING {claimed_columns}
), counted AS (
  UPDATE pools SET used = used + (SELECT count(*) FROM claimed)
  WHERE name = :pool AND EXISTS (SELECT FROM claimed)
), rested AS (
  UPDATE sessions SET busy = busy - :ended + (SELECT count(*) FROM claimed WHERE state = 'running')
  WHERE id = :session AND (:ended::bigint <> 0 OR EXISTS (SELECT FROM claimed))
), begun AS (
  UPDATE schedule_runs SET status = 'running', started_at = COALESCE(started_at, :now), attempt_count = attempt_count + 1
  WHERE id = ANY(ARRAY(SELECT ledger_run FROM claimed WHERE state = 'running' AND ledger_run IS NOT NULL))
    AND status IN ('pending', 'running')
)
SELECT claimed.* FROM alive LEFT JOIN claimed ON true
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, :pool, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM room WHERE free IS NULL

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

-- name: advance_schedules
-- columns: id opened_through next_run_at fire_at last_run_at
-- Forwards only.
UPDATE schedules SET opened_through = r.opened_through, next_run_at = r.next_run_at, fire_at = r.fire_at,
  last_run_at = r.last_run_at
FROM unnest(:id::text[], :opened_through::bigint[], :next_run_at::bigint[], :fire_at::bigint[], :last_run_at::bigint[])
     AS r(id, opened_through, next_run_at, fire_at, last_run_at)
WHERE schedules.id = ANY(:id::text[]) AND schedules.id = r.id AND schedules.opened_through <= r.opened_through

-- name: insert_runs
-- columns: id schedule_id owner_user_id revision kind own_key scheduled_for fire_at opened_at status reason detail job_id run_id trace_id attempt_count started_at completed_at error_message
-- repeats: owner_user_id revision kind own_key scheduled_for fire_at opened_at status attempt_count
-- Adds a row unless its id, its slot or its key is taken; answers what was added. In order, so that two who add the same
-- rows wait for each other at one place only.
INSERT INTO schedule_runs ({run_columns})
SELECT id, schedule_id, COALESCE(owner_user_id, (:owner_user_id::text[])[1]), COALESCE(revision, (:revision::bigint[])[1]),
       COALESCE(kind, (:kind::text[])[1]), COALESCE(own_key, (:own_key::text[])[1]) AS its_key,
       COALESCE(scheduled_for, (:scheduled_for::bigint[])[1]) AS slot, COALESCE(fire_at, (:fire_at::bigint[])[1]),
       COALESCE(opened_at, (:opened_at::bigint[])[1]), COALESCE(status, (:status::text[])[1]), reason, detail, job_id,
       run_id, trace_id, COALESCE(attempt_count, (:attempt_count::bigint[])[1]), started_at, completed_at, error_message
FROM unnest(
  :id::text[], :schedule_id::text[], :owner_user_id::text[], :revision::bigint[], :kind::text[], :own_key::text[],
  :scheduled_for::bigint[], :fire_at::bigint[], :opened_at::bigint[], :status::text[], :reason::text[], :detail::text[],
  :job_id::text[], :run_id::text[], :trace_id::text[], :attempt_count::bigint[], :started_at::bigint[],
  :completed_at::bigint[], :error_message::text[])
  AS given({run_columns})
ORDER BY schedule_id, slot, its_key
ON CONFLICT DO NOTHING
RETURNING id

-- name: runs_in_flight
-- columns: schedule_id
SELECT schedule_id, scheduled_for, id, status FROM schedule_runs
WHERE schedule_id = ANY(:schedule_id::text[]) AND completed_at IS NULL

-- name: close_runs
-- columns: id status reason detail error_message completed_at
UPDATE schedule_runs SET status = r.status, reason = r.reason, detail = r.detail, error_message = r.error_message,
  completed_at = r.completed_at
FROM unnest(:id::text[], :status::text[], :reason::text[], :detail::text[], :error_message::text[], :completed_at::bigint[])
     AS r(id, status, reason, detail, error_message, completed_at)
WHERE schedule_runs.id = ANY(:id::text[]) AND schedule_runs.id = r.id AND schedule_runs.status IN ('pending', 'running')

-- name: last_gaps
-- columns: schedule_id
-- Each schedule's last gap, with the cadence it was found by.
SELECT g.schedule_id, first_slot, last_slot, slots, reason, g.revision, g.recorded_at,
       cron, timezone, every_s, anchor_at, once_at, start_at, end_at
FROM unnest(:schedule_id::text[]) AS asked(id)
CROSS JOIN LATERAL (
  SELECT * FROM schedule_gaps WHERE schedule_id = asked.id ORDER BY first_slot DESC LIMIT 1) AS g
CROSS JOIN LATERAL (
  SELECT * FROM schedule_revisions WHERE schedule_id = g.schedule_id AND number = g.revision OFFSET 0) AS r

-- name: save_gaps
-- columns: schedule_id first_slot last_slot slots reason revision recorded_at
INSERT INTO schedule_gaps ({gap_columns})
SELECT * FROM unnest(:schedule_id::text[], :first_slot::bigint[], :last_slot::bigint[], :slots::bigint[], :reason::text[],
                     :revision::bigint[], :recorded_at::bigint[])
ON CONFLICT (schedule_id, first_slot) DO UPDATE SET
  last_slot = excluded.last_slot, slots = excluded.slots, recorded_at = excluded.recorded_at

-- name: save_arrears
-- columns: schedule_id first_slot next_slot last_slot slots due_at every_us revision
INSERT INTO schedule_arrears ({arrears_columns})
SELECT * FROM unnest(:schedule_id::text[], :first_slot::bigint[], :next_slot::bigint[], :last_slot::bigint[],
                     :slots::bigint[], :due_at::bigint[], :every_us::bigint[], :revision::bigint[])
ON CONFLICT (schedule_id, first_slot) DO UPDATE SET
  next_slot = excluded.next_slot, last_slot = excluded.last_slot, slots = excluded.slots, due_at = excluded.due_at,
  every_us = excluded.every_us

-- name: forget_arrears
-- columns: schedule_id first_slot
DELETE FROM schedule_arrears USING unnest(:schedule_id::text[], :first_slot::bigint[]) AS r(schedule_id, first_slot)
WHERE schedule_arrears.schedule_id = ANY(:schedule_id::text[])
  AND schedule_arrears.schedule_id = r.schedule_id AND schedule_arrears.first_slot = r.first_slot

-- name: forget_revocations
-- columns: job_id
DELETE FROM revocations WHERE job_id = ANY(:job_id::text[])

-- name: begin_runs
-- columns: id
-- Their jobs have entered their handlers; the first start stands. A claim does the same in its own statement.
UPDATE schedule_runs SET status = 'running', started_at = COALESCE(started_at, :now), attempt_count = attempt_count + 1
WHERE id = ANY(:id::text[]) AND status IN ('pending', 'running')

-- name: uncount_attempts
-- columns: id
-- Their jobs were given back before they entered their handlers.
UPDATE schedule_runs SET attempt_count = attempt_count - 1 WHERE id = ANY(:id::text[]) AND status IN ('pending', 'running')

-- name: end_runs
-- columns: job
-- The rows of jobs that have ended for good end as they did.
WITH f AS MATERIALIZED (
  SELECT ledger_run, status, error, finished_at FROM finished_jobs WHERE id = ANY(:job::text[])
)
UPDATE schedule_runs SET {as_its_job} FROM f
WHERE schedule_runs.id = ANY(ARRAY(SELECT ledger_run FROM f)) AND schedule_runs.id = f.ledger_run
  AND schedule_runs.status IN ('pending', 'running')

-- fragment: is_a_job
(EXISTS (SELECT FROM jobs WHERE id = r.job_id OFFSET 0) OR EXISTS (SELECT FROM finished_jobs WHERE id = r.job_id OFFSET 0))

-- name: insert_log_lines
-- columns: job_id seq at level text
INSERT INTO job_logs (job_id, seq, at, level, text)
SELECT * FROM unnest(:job_id::text[], :seq::bigint[], :at::bigint[], :level::text[], :text::text[])
     AS r(job_id, seq, at, level, text)
WHERE {is_a_job} ON CONFLICT DO NOTHING

-- name: save_progress
-- columns: job_id at permille note
INSERT INTO job_progress (job_id, at, permille, note)
SELECT * FROM unnest(:job_id::text[], :at::bigint[], :permille::bigint[], :note::text[]) AS r(job_id, at, permille, note)
WHERE {is_a_job}
ON CONFLICT (job_id) DO UPDATE SET at = excluded.at, permille = excluded.permille, note = excluded.note
WHERE excluded.at >= job_progress.at

-- name: insert_artifacts
-- columns: job_id name size sha256
INSERT INTO job_artifacts (job_id, name, size, sha256)
SELECT * FROM unnest(:job_id::text[], :name::text[], :size::bigint[], :sha256::text[]) AS r(job_id, name, size, sha256)
WHERE {is_a_job} ON CONFLICT DO NOTHING

-- name: forget_log_lines
-- columns: job_id
DELETE FROM job_logs WHERE job_id = ANY(:job_id::text[])

-- name: forget_progress
-- columns: job_id
DELETE FROM job_progress WHERE job_id = ANY(:job_id::text[])

-- name: forget_artifacts
-- columns: job_id
DELETE FROM job_artifacts WHERE job_id = ANY(:job_id::text[])

-- name: last_runs
-- columns: schedule_id
SELECT r.* FROM schedules s CROSS JOIN LATERAL (
  SELECT {run_columns} FROM schedule_runs
  WHERE schedule_id = s.id AND {has_run} AND scheduled_for <= s.last_run_at
  ORDER BY scheduled_for DESC, own_key DESC LIMIT 1
) r
WHERE s.id = ANY(:schedule_id::text[])

-- name: save_origins
-- columns: chain_id owner_user_id template template_version params_schema webhook_url
-- Where shares count, the job that was put is its owner's now.
WITH owned AS (
  UPDATE jobs SET share = o.owner FROM unnest(:chain_id::text[], :owner_user_id::text[]) AS o(chain, owner)
  WHERE jobs.id = ANY(:chain_id::text[]) AND jobs.id = o.chain AND jobs.share IS NOT NULL
)
INSERT INTO job_origins (chain_id, owner_user_id, template, template_version, params_schema, webhook_url)
SELECT * FROM unnest(:chain_id::text[], :owner_user_id::text[], :template::text[], :template_version::bigint[],
                     :params_schema::text[], :webhook_url::text[])
ON CONFLICT (chain_id) DO UPDATE SET owner_user_id = excluded.owner_user_id, template = excluded.template,
  template_version = excluded.template_version, params_schema = excluded.params_schema, webhook_url = excluded.webhook_url

-- name: forget_origins
-- columns: chain
-- Of chains that have no job left.
DELETE FROM job_origins
WHERE chain_id = ANY(ARRAY(SELECT o.chain FROM unnest(:chain::text[]) AS o(chain) WHERE {is_forgotten}))

-- name: forget_retries
-- columns: chain
DELETE FROM manual_retries
WHERE chain = ANY(ARRAY(SELECT o.chain FROM unnest(:chain::text[]) AS o(chain) WHERE {is_forgotten}))

-- fragment: is_forgotten
NOT EXISTS (SELECT FROM jobs WHERE id = o.chain OFFSET 0)
  AND NOT EXISTS (SELECT FROM jobs WHERE jobs.chain = o.chain AND retry_of IS NOT NULL OFFSET 0)
  AND NOT EXISTS (SELECT FROM finished_jobs WHERE id = o.chain OFFSET 0)
  AND NOT EXISTS (SELECT FROM finished_jobs f WHERE f.chain = o.chain AND retry_of IS NOT NULL OFFSET 0)

-- name: insert_members
-- columns: id group_id place name job_id state pool resources spec
INSERT INTO group_members (id, group_id, place, name, job_id, state, pool, resources, spec)
SELECT * FROM unnest(:id::text[], :group_id::text[], :place::bigint[], :name::text[], :job_id::text[], :state::text[],
                     :pool::text[], :resources::text[], :spec::text[])
ON CONFLICT DO NOTHING

-- name: end_members
-- columns: job
-- Members whose chains have ended, as their last jobs did.
WITH f AS MATERIALIZED (
  SELECT id, chain, status, error, finished_at FROM finished_jobs WHERE id = ANY(:job::text[])
)
UPDATE group_members SET {as_its_last_job} FROM f
WHERE group_members.job_id = ANY(ARRAY(SELECT chain FROM f)) AND group_members.job_id = f.chain AND group_members.state = 'live'
RETURNING group_members.group_id, group_members.place, group_members.state

-- name: set_members_live
-- columns: id
UPDATE group_members SET state = 'live' WHERE id = ANY(:id::text[]) AND state = 'pending'

-- name: reopen_members
-- columns: id job_id
UPDATE group_members SET state = 'pending', job_id = r.job_id, reason = NULL, last_job = NULL, ended_at = NULL
FROM unnest(:id::text[], :job_id::text[]) AS r(id, job_id) WHERE group_members.id = ANY(:id::text[]) AND group_members.id = r.id
