-- Reviews of executions, and the deliveries that decided some.

-- fragment: review_columns
id, run_id, attempt, owner_user_id, graph_id, kind, question_id, question, created_at, deadline, on_silence, silent_value, state,
value, note, decided_by, decided_at, decision_key, job_id

-- name: insert_review
-- A question that was asked before is the same one, written again.
INSERT INTO reviews ({review_columns})
VALUES (:id, :run_id, :attempt, :owner, :graph_id, :kind, :question_id, :question, :created_at, :deadline, :on_silence,
        :silent_value, 'open', NULL, '', NULL, NULL, NULL, NULL)
ON CONFLICT DO NOTHING

-- name: review_by_id
SELECT {review_columns} FROM reviews WHERE id = :id

-- name: reviews_of_run
SELECT {review_columns} FROM reviews WHERE run_id = :run_id ORDER BY attempt, id

-- name: newest_reviews
SELECT {review_columns} FROM reviews
WHERE id < :before ORDER BY id DESC LIMIT :most

-- name: newest_reviews_by_state
SELECT {review_columns} FROM reviews
WHERE (state, id) < (:state, :before) AND state >= :state ORDER BY state DESC, id DESC LIMIT :most

-- name: newest_reviews_of_owner
SELECT {review_columns} FROM reviews
WHERE (owner_user_id, id) < (:owner, :before) AND owner_user_id >= :owner
ORDER BY owner_user_id DESC, id DESC LIMIT :most

-- name: newest_reviews_of_owner_by_state
SELECT {review_columns} FROM reviews
WHERE (owner_user_id, state, id) < (:owner, :state, :before) AND (owner_user_id, state) >= (:owner, :state)
ORDER BY owner_user_id DESC, state DESC, id DESC LIMIT :most

-- name: overdue_reviews
SELECT {review_columns} FROM reviews WHERE state = 'open' AND deadline <= :now ORDER BY deadline LIMIT :most

-- name: decide_review
-- The first decision stands.
UPDATE reviews SET state = :state, value = :value, note = :note, decided_by = :decided_by, decided_at = :now,
  decision_key = :decision_key
WHERE id = :id AND state = 'open'
RETURNING id

-- name: withdraw_reviews
UPDATE reviews SET state = 'withdrawn', decided_by = :reason, decided_at = :now WHERE run_id = :run_id AND state = 'open'

-- name: attach_reviews
-- The job that waits for them.
UPDATE reviews SET job_id = :job_id WHERE run_id = :run_id AND state = 'open'

-- name: runs_waiting_with
-- The execution that a job waits for, or goes on with now that all is decided.
SELECT waiting.run_id FROM execution_requests AS waiting JOIN reviews ON reviews.run_id = waiting.run_id
WHERE waiting.status = 'waiting' AND reviews.job_id = :job_id
UNION
SELECT run_id FROM execution_requests WHERE status = 'waiting' AND waiting_job = :job_id

-- name: cancel_waiting_execution
UPDATE execution_requests SET status = 'done', ok = 0, error_code = 'cancelled', error_message = :reason, result = NULL,
  waits_for = NULL, completed_at = :now
WHERE run_id = :run_id AND status = 'waiting'

-- name: suspend_job
-- It keeps its lane, as a retry whose time has not come does, and nothing else. One that was asked to stop is not suspended.
UPDATE jobs SET state = 'backoff', run_at = :until, session = NULL, token = NULL, started_at = NULL
WHERE id = :id AND session = :session AND token = :token AND state = 'running' AND cancel_reason IS NULL
RETURNING id

-- name: wake_job
-- Due now, if it is still suspended.
UPDATE jobs SET run_at = :now WHERE id = :id AND state = 'backoff' AND run_at > :now RETURNING id

-- name: note_delivery
INSERT INTO inbound_deliveries (source, delivery_id, received_at) VALUES (:source, :delivery_id, :now)
ON CONFLICT (source, delivery_id) DO NOTHING
RETURNING 1

-- name: forget_deliveries
DELETE FROM inbound_deliveries WHERE received_at < :before
