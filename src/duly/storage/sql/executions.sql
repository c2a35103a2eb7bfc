-- Executions of graphs.

-- fragment: execution_columns
idempotency_key, request_hash, request, graph_id, grant_id, run_id, trace_id, status, ok, error_code, error_message, result,
waits_for, reply, attempt, token, era, expires_at, created_at, completed_at

-- name: claim_execution
INSERT INTO execution_requests (idempotency_key, request_hash, request, graph_id, grant_id, run_id, trace_id, status, attempt,
  token, era, expires_at, created_at)
VALUES (:key, :hash, :request, :graph_id, :grant_id, :run_id, :trace_id, 'running', 1, :token, :era, :expires_at, :now)
ON CONFLICT (idempotency_key) DO NOTHING
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
UPDATE execution_requests SET status = 'waiting', waits_for = :waits_for, result = :result, reply = NULL
WHERE idempotency_key = :key AND token = :token AND status = 'running'
RETURNING {execution_columns}

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
