-- Statements that take many rows, as SQLite runs them: once for each row, in order.

-- name: insert_jobs
-- columns: id kind payload key lane pool resources priority position retry_of run_at created_at state attempt max_attempts backoff_ms backoff_cap_ms timeout_ms chain ledger_run member
-- changed: id
-- Adds a job unless its id, its key or its lane's head is taken, or its pool takes none; answers what was added.
-- Where no pool takes it, it has no rank, and a row without one is passed over as well. INSERT from a SELECT would say
-- so more plainly, but keeps a journal of its own for every row.
INSERT OR IGNORE INTO jobs (
  id, kind, payload, key, lane, pool, resources, priority, rank, position, run_at, created_at, state, attempt,
  max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, retry_of, chain, ledger_run, member, share)
VALUES (
  :id, :kind, :payload, :key, :lane, :pool, :resources, :priority,
  (SELECT CASE WHEN ageing_ms IS NULL THEN -:priority ELSE :position - :priority * ageing_ms * 1000 END FROM pools
   WHERE name = :pool AND (mode <> 'draining' OR :retry_of IS NOT NULL OR :member IS NOT NULL)
     AND NOT EXISTS (SELECT 1 FROM finished_jobs f WHERE f.id = :id)),
  :position, :run_at, :created_at, :state, :attempt, :max_attempts, :backoff_ms, :backoff_cap_ms, :timeout_ms, :retry_of,
  :chain, :ledger_run, :member,
  (SELECT COALESCE(
     (SELECT owner_user_id FROM job_origins WHERE chain_id = :chain),
     (SELECT owner_user_id FROM schedule_runs WHERE id = :ledger_run),
     substr(:lane, 1, instr(:lane || '/', '/') - 1), '')
   FROM pools WHERE name = :pool AND per_owner IS NOT NULL))

-- name: insert_alike
-- columns: id payload position
-- changed: id
-- Many new jobs that differ in their payloads only, without keys and lanes: nothing but the pool can be in their way.
-- Answers nothing if that takes none.
INSERT OR IGNORE INTO jobs (id, kind, payload, pool, priority, rank, position, run_at, created_at, state, attempt,
                  max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, chain, share)
VALUES (:id, :kind, :payload, :pool, :priority,
        (SELECT CASE WHEN ageing_ms IS NULL THEN -:priority ELSE :position - :priority * ageing_ms * 1000 END FROM pools
         WHERE name = :pool AND mode <> 'draining'),
        :position, :run_at, :created_at, :state, 1, :max_attempts, :backoff_ms, :backoff_cap_ms, :timeout_ms, :id,
        (SELECT '' FROM pools WHERE name = :pool AND per_owner IS NOT NULL))

-- name: record_finished
-- columns: id token status error exit_code result retryable
-- A run that was asked to stop ends as cancelled, whatever its failure was called.
INSERT INTO finished_jobs ({finished_columns}, owner_user_id)
SELECT id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of,
       chain, session, token, started_at, :now,
       CASE WHEN cancel_reason IS NOT NULL AND :status = 'FAILED' THEN 'CANCELLED' ELSE :status END,
       CASE WHEN cancel_reason IS NOT NULL AND :status = 'FAILED' THEN cancel_reason ELSE :error END,
       :exit_code, :result, ledger_run, backoff_ms, backoff_cap_ms, timeout_ms, :retryable, {owner_of_ended}
FROM jobs WHERE id = :id AND session = :session AND token = :token AND state = 'running'

-- name: finish
-- columns: id token
-- Only the claim's own session and token end a run; anything else changes nothing.
DELETE FROM jobs WHERE id = :id AND session = :session AND token = :token AND state = 'running'
RETURNING id, lane, pool, resources, ledger_run, member

-- name: record_alike
-- As `record_finished`, for the common batch: one claim's runs that all succeeded without a word. `ids` is a JSON array:
-- one statement for all of them saves starting one for each. The plus keeps the session's index out of it.
INSERT INTO finished_jobs ({finished_columns}, owner_user_id)
SELECT id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of,
       chain, session, token, started_at, :now, :status, NULL, NULL, NULL, ledger_run,
       backoff_ms, backoff_cap_ms, timeout_ms, NULL, {owner_of_ended}
FROM jobs
WHERE id IN (SELECT value FROM json_each(:ids)) AND +session = :session AND token = :token AND state = 'running'

-- name: finish_alike
-- As `finish`, for the same batch.
DELETE FROM jobs
WHERE id IN (SELECT value FROM json_each(:ids)) AND +session = :session AND token = :token AND state = 'running'
RETURNING id, lane, pool, resources, ledger_run, member

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
RETURNING name, used + :freed + tickets >= slots OR per_owner IS NOT NULL, parked > 0

-- name: rest_session
-- Frees the executors whose runs ended; nothing is answered if the session is gone.
UPDATE sessions SET busy = busy - :ended WHERE id = :session RETURNING id

-- name: claim
-- columns: pool wanted
-- The next jobs in the pool's order, as many as the pool has room for. One with extra resources is held until it has them.
-- None of a pool with a limit per owner.
UPDATE jobs SET
  state = CASE WHEN resources IS NULL THEN :state ELSE 'claimed' END,
  started_at = CASE WHEN resources IS NULL AND :state = 'running' THEN :now END,
  session = :session, token = :token
WHERE id IN (
  SELECT id FROM jobs WHERE pool = :pool AND state = 'ready' ORDER BY {in_order}
  LIMIT (SELECT max(0, min(:wanted, slots - used - tickets)) FROM pools
         WHERE name = :pool AND mode <> 'paused' AND per_owner IS NULL
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

-- name: advance_schedules
-- columns: id opened_through next_run_at fire_at last_run_at
-- Forwards only.
UPDATE schedules SET opened_through = :opened_through, next_run_at = :next_run_at, fire_at = :fire_at,
  last_run_at = :last_run_at
WHERE id = :id AND opened_through <= :opened_through

-- name: insert_runs
-- columns: id schedule_id owner_user_id revision kind own_key scheduled_for fire_at opened_at status reason detail job_id run_id trace_id attempt_count started_at completed_at error_message
-- changed: id
-- Adds a row unless its id, its slot or its key is taken; answers what was added.
INSERT INTO schedule_runs ({run_columns})
VALUES (:id, :schedule_id, :owner_user_id, :revision, :kind, :own_key, :scheduled_for, :fire_at, :opened_at, :status, :reason,
        :detail, :job_id, :run_id, :trace_id, :attempt_count, :started_at, :completed_at, :error_message)
ON CONFLICT DO NOTHING

-- name: runs_in_flight
-- columns: schedule_id
SELECT schedule_id, scheduled_for, id, status FROM schedule_runs
WHERE schedule_id = :schedule_id AND completed_at IS NULL

-- name: close_runs
-- columns: id status reason detail error_message completed_at
UPDATE schedule_runs SET status = :status, reason = :reason, detail = :detail, error_message = :error_message,
  completed_at = :completed_at
WHERE id = :id AND completed_at IS NULL

-- name: last_gaps
-- columns: schedule_id
-- Each schedule's last gap, with the cadence it was found by.
SELECT g.schedule_id, first_slot, last_slot, slots, reason, g.revision, g.recorded_at,
       cron, timezone, every_s, anchor_at, once_at, start_at, end_at
FROM (SELECT * FROM schedule_gaps WHERE schedule_id = :schedule_id ORDER BY first_slot DESC LIMIT 1) AS g
JOIN schedule_revisions r ON r.schedule_id = g.schedule_id AND r.number = g.revision

-- name: save_gaps
-- columns: schedule_id first_slot last_slot slots reason revision recorded_at
INSERT INTO schedule_gaps ({gap_columns})
VALUES (:schedule_id, :first_slot, :last_slot, :slots, :reason, :revision, :recorded_at)
ON CONFLICT (schedule_id, first_slot) DO UPDATE SET
  last_slot = excluded.last_slot, slots = excluded.slots, recorded_at = excluded.recorded_at

-- name: save_arrears
-- columns: schedule_id first_slot next_slot last_slot slots due_at every_us revision
INSERT INTO schedule_arrears ({arrears_columns})
VALUES (:schedule_id, :first_slot, :next_slot, :last_slot, :slots, :due_at, :every_us, :revision)
ON CONFLICT (schedule_id, first_slot) DO UPDATE SET
  next_slot = excluded.next_slot, last_slot = excluded.last_slot, slots = excluded.slots, due_at = excluded.due_at,
  every_us = excluded.every_us

-- name: forget_arrears
-- columns: schedule_id first_slot
DELETE FROM schedule_arrears WHERE schedule_id = :schedule_id AND first_slot = :first_slot

-- name: forget_revocations
-- columns: job_id
DELETE FROM revocations WHERE job_id = :job_id

-- name: begin_runs
-- columns: id
-- Their jobs have entered their handlers; the first start stands.
UPDATE schedule_runs SET status = 'running', started_at = COALESCE(started_at, :now), attempt_count = attempt_count + 1
WHERE id = :id AND completed_at IS NULL

-- name: uncount_attempts
-- columns: id
-- Their jobs were given back before they entered their handlers.
UPDATE schedule_runs SET attempt_count = attempt_count - 1 WHERE id = :id AND completed_at IS NULL

-- name: end_runs
-- columns: job
-- The rows of jobs that have ended for good end as they did.
UPDATE schedule_runs SET {as_its_job}
FROM finished_jobs f
WHERE f.id = :job AND schedule_runs.id = f.ledger_run AND schedule_runs.completed_at IS NULL

-- fragment: is_a_job
(EXISTS (SELECT 1 FROM jobs WHERE id = :job_id) OR EXISTS (SELECT 1 FROM finished_jobs WHERE id = :job_id))

-- name: insert_log_lines
-- columns: job_id seq at level text
INSERT INTO job_logs (job_id, seq, at, level, text)
SELECT :job_id, :seq, :at, :level, :text WHERE {is_a_job} ON CONFLICT DO NOTHING

-- name: save_progress
-- columns: job_id at permille note
INSERT INTO job_progress (job_id, at, permille, note) SELECT :job_id, :at, :permille, :note WHERE {is_a_job}
ON CONFLICT (job_id) DO UPDATE SET at = excluded.at, permille = excluded.permille, note = excluded.note
WHERE excluded.at >= job_progress.at

-- name: insert_artifacts
-- columns: job_id name size sha256
INSERT INTO job_artifacts (job_id, name, size, sha256) SELECT :job_id, :name, :size, :sha256 WHERE {is_a_job}
ON CONFLICT DO NOTHING

-- name: forget_log_lines
-- columns: job_id
DELETE FROM job_logs WHERE job_id = :job_id

-- name: forget_progress
-- columns: job_id
DELETE FROM job_progress WHERE job_id = :job_id

-- name: forget_artifacts
-- columns: job_id
DELETE FROM job_artifacts WHERE job_id = :job_id

-- name: last_runs
-- columns: schedule_id
SELECT {run_columns} FROM schedule_runs
WHERE schedule_id = :schedule_id AND {has_run}
  AND scheduled_for <= (SELECT last_run_at FROM schedules WHERE schedules.id = :schedule_id)
ORDER BY scheduled_for DESC, own_key DESC LIMIT 1

-- name: save_origins
-- columns: chain_id owner_user_id template template_version params_schema webhook_url
INSERT INTO job_origins (chain_id, owner_user_id, template, template_version, params_schema, webhook_url)
VALUES (:chain_id, :owner_user_id, :template, :template_version, :params_schema, :webhook_url)
ON CONFLICT (chain_id) DO UPDATE SET owner_user_id = excluded.owner_user_id, template = excluded.template,
  template_version = excluded.template_version, params_schema = excluded.params_schema, webhook_url = excluded.webhook_url

-- name: forget_origins
-- columns: chain
-- Of chains that have no job left.
DELETE FROM job_origins WHERE chain_id = :chain AND {is_forgotten}

-- name: forget_retries
-- columns: chain
DELETE FROM manual_retries WHERE chain = :chain AND {is_forgotten}

-- fragment: is_forgotten
NOT EXISTS (SELECT 1 FROM jobs WHERE id = :chain)
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE chain = :chain AND retry_of IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM finished_jobs WHERE id = :chain)
  AND NOT EXISTS (SELECT 1 FROM finished_jobs WHERE chain = :chain AND retry_of IS NOT NULL)

-- name: insert_members
-- columns: id group_id place name job_id state pool resources spec
INSERT INTO group_members (id, group_id, place, name, job_id, state, pool, resources, spec)
VALUES (:id, :group_id, :place, :name, :job_id, :state, :pool, :resources, :spec)
ON CONFLICT DO NOTHING

-- name: end_members
-- columns: job
-- Members whose chains have ended, as their last jobs did.
UPDATE group_members SET {as_its_last_job}
FROM finished_jobs f WHERE f.id = :job AND group_members.job_id = f.chain AND group_members.state = 'live'
RETURNING group_members.group_id, group_members.place, group_members.state

-- name: set_members_live
-- columns: id
UPDATE group_members SET state = 'live' WHERE id = :id AND state = 'pending'

-- name: reopen_members
-- columns: id job_id
UPDATE group_members SET state = 'pending', job_id = :job_id, reason = NULL, last_job = NULL, ended_at = NULL WHERE id = :id
