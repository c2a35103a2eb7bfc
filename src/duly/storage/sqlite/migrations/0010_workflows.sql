-- Workflows: documents in numbered versions, which schedules run them, and what became of each node of a run.

CREATE TABLE workflows (
  name          TEXT NOT NULL PRIMARY KEY,
  owner_user_id TEXT NOT NULL,
  newest        INTEGER NOT NULL CHECK (newest >= 1),
  deployed      INTEGER NOT NULL CHECK (deployed = 0 OR deployed = 1),
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX workflows_of_owner ON workflows (owner_user_id, name);

-- Append-only.
CREATE TABLE workflow_versions (
  name          TEXT NOT NULL REFERENCES workflows (name),
  version       INTEGER NOT NULL CHECK (version >= 1),
  owner_user_id TEXT NOT NULL,
  hash          TEXT NOT NULL,
  document      TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (name, version)
) STRICT;

-- Which schedules run a workflow; one without a trigger was made by hand.
CREATE TABLE workflow_schedules (
  schedule_id   TEXT NOT NULL PRIMARY KEY REFERENCES schedules (id),
  owner_user_id TEXT NOT NULL,
  workflow      TEXT NOT NULL,
  trigger_id    TEXT
) STRICT;

CREATE UNIQUE INDEX workflow_schedules_of_trigger ON workflow_schedules (workflow, trigger_id) WHERE trigger_id IS NOT NULL;
CREATE INDEX workflow_schedules_of_workflow ON workflow_schedules (workflow, schedule_id);

-- What programs have registered, so that whoever deploys is told of an action that nobody has.
CREATE TABLE workflow_actions (
  owner_user_id TEXT NOT NULL,
  program       TEXT NOT NULL,
  name          TEXT NOT NULL,
  PRIMARY KEY (owner_user_id, program, name)
) STRICT;

CREATE INDEX workflow_actions_by_name ON workflow_actions (name);

CREATE TABLE workflow_launches (
  execution_key   TEXT NOT NULL PRIMARY KEY,
  idempotency_key TEXT NOT NULL,
  owner_user_id   TEXT NOT NULL,
  workflow        TEXT NOT NULL,
  version         INTEGER NOT NULL,
  scheduled_for   INTEGER,
  job_id          TEXT NOT NULL,
  request_hash    TEXT NOT NULL,
  created_at      INTEGER NOT NULL
) STRICT;

-- Which version an execution runs, through all its attempts; and what an executor elsewhere said of it.
CREATE TABLE dag_runs (
  run_id        TEXT NOT NULL PRIMARY KEY REFERENCES execution_requests (run_id),
  owner_user_id TEXT NOT NULL,
  workflow      TEXT NOT NULL,
  version       INTEGER NOT NULL,
  begun_at      INTEGER NOT NULL,
  accepted_at   INTEGER,
  callback      TEXT CHECK (callback = 'STARTED' OR callback = 'SUCCESS' OR callback = 'FAILED'),
  callback_said TEXT
) STRICT;

CREATE INDEX dag_runs_of_workflow ON dag_runs (workflow, run_id);

CREATE TABLE dag_nodes (
  run_id        TEXT NOT NULL REFERENCES dag_runs (run_id),
  node          TEXT NOT NULL,
  owner_user_id TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state = 'running' OR state = 'success' OR state = 'failed' OR state = 'skipped'),
  tries         INTEGER NOT NULL CHECK (tries >= 0),
  result        TEXT,
  error_code    TEXT,
  error         TEXT,
  started_at    INTEGER,
  ended_at      INTEGER,
  PRIMARY KEY (run_id, node),
  CONSTRAINT dag_nodes_over CHECK ((state = 'running') = (ended_at IS NULL)),
  CONSTRAINT dag_nodes_answered CHECK ((state = 'success') = (result IS NOT NULL))
) STRICT;
