-- name: insert_execution_events
-- columns: run_id seq attempt at kind data
INSERT INTO execution_events (run_id, seq, attempt, at, kind, data)
SELECT * FROM unnest(:run_id::text[], :seq::bigint[], :attempt::bigint[], :at::bigint[], :kind::text[], :data::text[])
ON CONFLICT DO NOTHING
