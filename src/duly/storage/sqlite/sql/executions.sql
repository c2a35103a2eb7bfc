-- name: insert_execution_events
-- columns: run_id seq attempt at kind data
INSERT INTO execution_events (run_id, seq, attempt, at, kind, data) VALUES (:run_id, :seq, :attempt, :at, :kind, :data)
ON CONFLICT DO NOTHING
