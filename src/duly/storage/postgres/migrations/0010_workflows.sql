-- Workflows: documents in numbered versions, which schedules run them, and what became of each node of a run.

CREATE TABLE workflows (
  name          text COLLATE "C" NOT NULL PRIMARY KEY,
  owner_user_id text COLLATE "C" NOT NULL,
  newest        bigint NOT NULL CHECK (newest >= 1),
  deployed      bigint NOT NULL CHECK (deployed = 0 OR deployed = 1),
  created_at    bigint NOT NULL,
  updated_at    bigint NOT NULL
);

CREATE INDEX workflows_of_owner ON workflows (owner_user_id, name);

-- Append-only.
CREATE TABLE workflow_versions (
  name          text COLLATE "C" NOT NULL REFERENCES workflows (name),
  version       bigint NOT NULL CHECK (version >= 1),
  owner_user_id text COLLATE "C" NOT NULL,
  hash          text NOT NULL,
  document      text NOT NULL,
  created_at    bigint NOT NULL,
  PRIMARY KEY (name, version)
);

-- Which schedules run a workflow; one without a trigger was made by hand.
CREATE TABLE workflow_schedules (
  schedule_id   text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES schedules (id),
  owner_user_id text COLLATE "C" NOT NULL,
  workflow      text COLLATE "C" NOT NULL,
  trigger_id    text COLLATE "C"
);

CREATE UNIQUE INDEX workflow_schedules_of_trigger ON workflow_schedules (workflow, trigger_id) WHERE trigger_id IS NOT NULL;
CREATE INDEX workflow_schedules_of_workflow ON workflow_schedules (workflow, schedule_id);

-- What programs have registered, so that whoever deploys is told of an action that nobody has.
CREATE TABLE workflow_actions (
  owner_user_id text COLLATE "C" NOT NULL,
  program       text COLLATE "C" NOT NULL,
  name          text COLLATE "C" NOT NULL,
  PRIMARY KEY (owner_user_id, program, name)
);

CREATE INDEX workflow_actions_by_name ON workflow_actions (name);

CREATE TABLE workflow_launches (
  execution_key   text COLLATE "C" NOT NULL PRIMARY KEY,
  idempotency_key text COLLATE "C" NOT NULL,
  owner_user_id   text COLLATE "C" NOT NULL,
  workflow        text COLLATE "C" NOT NULL,
  version         bigint NOT NULL,
  scheduled_for   bigint,
  job_id          text COLLATE "C" NOT NULL,
  request_hash    text NOT NULL,
  created_at      bigint NOT NULL
);

-- Which version an execution runs, through all its attempts; and what an executor elsewhere said of it.
CREATE TABLE dag_runs (
  run_id        text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES execution_requests (run_id),
  owner_user_id text COLLATE "C" NOT NULL,
  workflow      text COLLATE "C" NOT NULL,
  version       bigint NOT NULL,
  begun_at      bigint NOT NULL,
  accepted_at   bigint,
  callback      text CHECK (callback = 'STARTED' OR callback = 'SUCCESS' OR callback = 'FAILED'),
  callback_said text
);

CREATE INDEX dag_runs_of_workflow ON dag_runs (workflow, run_id);

CREATE TABLE dag_nodes (
  run_id        text COLLATE "C" NOT NULL REFERENCES dag_runs (run_id),
  node          text COLLATE "C" NOT NULL,
  owner_user_id text COLLATE "C" NOT NULL,
  state         text NOT NULL CHECK (state = 'running' OR state = 'success' OR state = 'failed' OR state = 'skipped'),
  tries         bigint NOT NULL CHECK (tries >= 0),
  result        text,
  error_code    text,
  error         text,
  started_at    bigint,
  ended_at      bigint,
  PRIMARY KEY (run_id, node),
  CONSTRAINT dag_nodes_over CHECK ((state = 'running') = (ended_at IS NULL)),
  CONSTRAINT dag_nodes_answered CHECK ((state = 'success') = (result IS NOT NULL))
);
