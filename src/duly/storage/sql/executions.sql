-- Executions of graphs.

-- fragment: execution_columns
idempotency_key, request_hash, request, graph_id, grant_id, run_id, trace_id, status, ok, error_code, error_message, result,
waits_for, reply, attempt, token, era, expires_at, created_at, completed_at, called_back_by, waiting_job,
(SELECT CAST(COALESCE(SUM(h.spent), 0) AS bigint) FROM holds h WHERE h.run_id = execution_requests.run_id)

-- name: claim_execution
INSERT INTO execution_requests (idempotency_key, request_hash, request, graph_id, grant_id, run_id, trace_id, status, attempt,
  token, era, expires_at, created_at)
VALUES (:key, :hash, :request, :graph_id, :grant_id, :run_id, :trace_id, 'running', 1, :token, :era, :expires_at, :now)
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING 1

-- name: bury_execution
-- In the place of a tombstone that is for another call, too: the last word is for the call that is still to come.
INSERT INTO execution_requests (idempotency_key, request_hash, request, graph_id, grant_id, run_id, trace_id, status, ok,
  error_code, error_message, attempt, token, era, expires_at, created_at, completed_at)
VALUES (:key, '', :request, :graph_id, :grant_id, :run_id, :trace_id, 'done', 0, :error_code, :error_message, 1, :token, :era,
        :expires_at, :now, :now)
ON CONFLICT (idempotency_key) DO UPDATE SET request = excluded.request, graph_id = excluded.graph_id,
  grant_id = excluded.grant_id, run_id = excluded.run_id, trace_id = excluded.trace_id, error_message = excluded.error_message,
  created_at = excluded.created_at, completed_at = excluded.completed_at
WHERE execution_requests.request_hash = ''
  AND (execution_requests.graph_id <> excluded.graph_id OR execution_requests.grant_id <> excluded.grant_id)
RETURNING 1

-- name: replace_tombstone
-- Under the row's lock. Nothing refers to a tombstone's run, as nothing ran.
UPDATE execution_requests SET request_hash = :hash, request = :request, graph_id = :graph_id, grant_id = :grant_id,
  run_id = :run_id, trace_id = :trace_id, status = 'running', ok = NULL, error_code = NULL, error_message = NULL,
  token = :token, era = :era, expires_at = :expires_at, created_at = :now, completed_at = NULL
WHERE idempotency_key = :key AND request_hash = ''

-- name: prune_tombstones
-- Asked once more of the row itself: a call, or a later cancel, may have taken the place of one meanwhile.
DELETE FROM execution_requests WHERE idempotency_key IN (
  SELECT idempotency_key FROM execution_requests WHERE request_hash = '' AND completed_at < :before
  ORDER BY completed_at LIMIT :most) AND request_hash = '' AND completed_at < :before
RETURNING 1

-- name: execution_by_key
SELECT {execution_columns} FROM execution_requests WHERE idempotency_key = :key

-- name: execution_by_key_locked
SELECT {execution_columns} FROM execution_requests WHERE idempotency_key = :key {lock}

-- name: execution_by_run
SELECT {execution_columns} FROM execution_requests WHERE run_id = :run_id

-- name: execution_by_run_locked
SELECT {execution_columns} FROM execution_requests WHERE run_id = :run_id {lock}

-- name: begin_attempt
-- Under the row's lock, so what was read of it still holds.
UPDATE execution_requests SET status = 'running', waits_for = NULL, result = NULL, reply = :reply, attempt = :attempt,
  token = :token, era = :era, expires_at = :expires_at
WHERE idempotency_key = :key AND status <> 'done'

-- name: renew_execution
UPDATE execution_requests SET era = :era, expires_at = :expires_at
WHERE idempotency_key = :key AND token = :token AND status = 'running'
RETURNING 1

-- name: execution_stands
-- Whoever takes over waits for those who looked: what they write comes before it.
SELECT 1 FROM execution_requests WHERE run_id = :run_id AND token = :token AND status = 'running' {lock:share}

-- name: end_execution
UPDATE execution_requests SET status = 'done', ok = :ok, error_code = :error_code, error_message = :error_message,
  result = :result, waits_for = NULL, completed_at = :now
WHERE idempotency_key = :key AND token = :token AND status <> 'done'
RETURNING {execution_columns}

-- name: suspend_execution
UPDATE execution_requests SET status = 'waiting', waits_for = :waits_for, result = :result, reply = NULL,
  called_back_by = :called_back_by, waiting_job = NULL
WHERE idempotency_key = :key AND token = :token AND status = 'running'
RETURNING {execution_columns}

-- name: await_call_back_with
-- A worker that lost its claim may say so of a job that has ended: it is the retry's by now.
UPDATE execution_requests SET waiting_job = :job_id WHERE run_id = :run_id AND status = 'waiting'
  AND EXISTS (SELECT 1 FROM jobs WHERE id = :job_id)

-- name: reply_to_execution
-- The first reply stands.
UPDATE execution_requests SET reply = COALESCE(reply, :reply) WHERE run_id = :run_id AND status = 'waiting'

-- name: last_event_of
SELECT COALESCE(MAX(seq), 0) FROM execution_events WHERE run_id = :run_id

-- name: events_after
SELECT run_id, seq, attempt, at, kind, data FROM execution_events
WHERE run_id = :run_id AND seq > :seq ORDER BY seq LIMIT :most

-- name: waiting_executions
SELECT {execution_columns} FROM execution_requests WHERE status = 'waiting' AND run_id > :after ORDER BY run_id LIMIT :most
