-- Workflows, the schedules that run them, and what became of each node of a run.

-- fragment: workflow_columns
name, owner_user_id, newest, deployed, created_at, updated_at

-- fragment: workflow_version_columns
name, version, owner_user_id, hash, document, created_at

-- fragment: dag_run_columns
run_id, owner_user_id, workflow, version, begun_at

-- fragment: dag_node_columns
run_id, node, owner_user_id, state, tries, result, error_code, error, started_at, ended_at

-- fragment: launch_columns
idempotency_key, owner_user_id, workflow, version, scheduled_for, job_id, request_hash, created_at, execution_key

-- name: insert_workflow
INSERT INTO workflows ({workflow_columns}) VALUES (:name, :owner, :newest, :deployed, :now, :now)
ON CONFLICT (name) DO NOTHING
RETURNING name

-- name: workflow_by_name
SELECT {workflow_columns} FROM workflows WHERE name = :name

-- name: workflow_by_name_locked
SELECT {workflow_columns} FROM workflows WHERE name = :name {lock}

-- name: update_workflow
UPDATE workflows SET newest = :newest, deployed = :deployed, updated_at = :now WHERE name = :name

-- name: workflows_listed
SELECT {workflow_columns} FROM workflows WHERE name > :after ORDER BY name LIMIT :most

-- name: workflows_listed_of_owner
SELECT {workflow_columns} FROM workflows WHERE owner_user_id = :owner AND name > :after ORDER BY name LIMIT :most

-- name: insert_workflow_version
INSERT INTO workflow_versions ({workflow_version_columns})
VALUES (:name, :version, :owner, :hash, :document, :now)
ON CONFLICT (name, version) DO NOTHING

-- name: workflow_version
SELECT {workflow_version_columns} FROM workflow_versions WHERE name = :name AND version = :version

-- name: workflow_versions_before
SELECT {workflow_version_columns} FROM workflow_versions WHERE name = :name AND version < :before
ORDER BY version DESC LIMIT :most

-- name: bind_schedule
INSERT INTO workflow_schedules (schedule_id, owner_user_id, workflow, trigger_id)
VALUES (:schedule_id, :owner, :workflow, :trigger)
ON CONFLICT (schedule_id) DO UPDATE SET owner_user_id = excluded.owner_user_id, workflow = excluded.workflow,
  trigger_id = excluded.trigger_id

-- name: unbind_schedule
DELETE FROM workflow_schedules WHERE schedule_id = :schedule_id

-- name: bound_schedule
SELECT schedule_id, owner_user_id, workflow, trigger_id FROM workflow_schedules WHERE schedule_id = :schedule_id

-- name: bound_schedules
SELECT schedule_id, owner_user_id, workflow, trigger_id FROM workflow_schedules WHERE workflow = :workflow
ORDER BY schedule_id

-- name: forget_actions
DELETE FROM workflow_actions WHERE owner_user_id = :owner AND program = :program

-- name: insert_action
INSERT INTO workflow_actions (owner_user_id, program, name) VALUES (:owner, :program, :name) ON CONFLICT DO NOTHING

-- name: actions_registered
SELECT DISTINCT name FROM workflow_actions

-- name: insert_launch
INSERT INTO workflow_launches ({launch_columns})
VALUES (:key, :owner, :workflow, :version, :scheduled_for, :job_id, :hash, :now, :execution_key)
ON CONFLICT (execution_key) DO NOTHING
RETURNING execution_key

-- name: launch_by_key
SELECT {launch_columns} FROM workflow_launches WHERE execution_key = :execution_key

-- name: pin_dag_run
INSERT INTO dag_runs ({dag_run_columns}) VALUES (:run_id, :owner, :workflow, :version, :now)
ON CONFLICT (run_id) DO NOTHING

-- name: dag_run_by_id
SELECT {dag_run_columns} FROM dag_runs WHERE run_id = :run_id

-- name: dag_runs_before
SELECT {dag_run_columns} FROM dag_runs WHERE workflow = :workflow AND run_id < :before ORDER BY run_id DESC LIMIT :most

-- name: forget_dag_nodes
DELETE FROM dag_nodes WHERE run_id = :run_id

-- name: save_dag_node
INSERT INTO dag_nodes ({dag_node_columns})
VALUES (:run_id, :node, :owner, :state, :tries, :result, :error_code, :error, :started_at, :ended_at)
ON CONFLICT (run_id, node) DO UPDATE SET state = excluded.state, tries = excluded.tries, result = excluded.result,
  error_code = excluded.error_code, error = excluded.error, started_at = excluded.started_at,
  ended_at = excluded.ended_at
WHERE dag_nodes.state <> 'success'

-- name: dag_nodes_of
SELECT {dag_node_columns} FROM dag_nodes WHERE run_id = :run_id ORDER BY node

-- name: accept_dag_run
UPDATE dag_runs SET accepted_at = :now WHERE run_id = :run_id AND accepted_at IS NULL

-- name: dag_run_accepted
-- Whoever calls back has taken it, also if its answer to the call never came.
SELECT run_id FROM dag_runs WHERE run_id = :run_id AND (accepted_at IS NOT NULL OR callback IS NOT NULL)

-- name: call_back_dag_run
UPDATE dag_runs SET callback = :status, callback_said = :said
WHERE run_id = :run_id AND (callback IS NULL OR callback = 'STARTED')
RETURNING run_id

-- name: dag_run_called_back
SELECT callback, callback_said FROM dag_runs WHERE run_id = :run_id AND callback IS NOT NULL
