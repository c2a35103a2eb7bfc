-- Checkpoints of graphs.

-- fragment: checkpoint_columns
run_id, namespace, checkpoint_id, parent_id, kind, state, about_kind, about

-- name: save_checkpoint
INSERT INTO graph_checkpoints ({checkpoint_columns})
VALUES (:run_id, :namespace, :checkpoint_id, :parent_id, :kind, :state, :about_kind, :about)
ON CONFLICT (run_id, namespace, checkpoint_id) DO UPDATE SET parent_id = excluded.parent_id, kind = excluded.kind,
  state = excluded.state, about_kind = excluded.about_kind, about = excluded.about

-- name: save_checkpoint_write
-- Places below zero are of the graph's own, such as errors and interrupts: there the last one stands.
INSERT INTO graph_checkpoint_writes (run_id, namespace, checkpoint_id, task_id, place, path, channel, kind, value)
VALUES (:run_id, :namespace, :checkpoint_id, :task_id, :place, :path, :channel, :kind, :value)
ON CONFLICT (run_id, namespace, checkpoint_id, task_id, place) DO UPDATE SET path = excluded.path,
  channel = excluded.channel, kind = excluded.kind, value = excluded.value
WHERE excluded.place < 0

-- name: checkpoint_by_name
SELECT {checkpoint_columns} FROM graph_checkpoints
WHERE run_id = :run_id AND namespace = :namespace AND checkpoint_id = :checkpoint_id

-- name: checkpoints_before
SELECT {checkpoint_columns} FROM graph_checkpoints
WHERE run_id = :run_id AND namespace = :namespace AND checkpoint_id < :checkpoint_id ORDER BY checkpoint_id DESC LIMIT :most

-- name: checkpoint_writes_of
SELECT task_id, place, path, channel, kind, value FROM graph_checkpoint_writes
WHERE run_id = :run_id AND namespace = :namespace AND checkpoint_id = :checkpoint_id ORDER BY task_id, place

-- name: forget_checkpoints
DELETE FROM graph_checkpoints WHERE run_id = :run_id

-- name: forget_checkpoint_writes
DELETE FROM graph_checkpoint_writes WHERE run_id = :run_id
