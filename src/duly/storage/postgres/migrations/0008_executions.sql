-- Executions of graphs: one row for each key, what they told, and what they left to go on from.

-- `ok` is null until it is over; `expires_at` is read by the clock of its era. `run_id` and `trace_id` stay through all attempts.
CREATE TABLE execution_requests (
  idempotency_key text COLLATE "C" NOT NULL PRIMARY KEY,
  request_hash    text NOT NULL,
  request         text NOT NULL,
  graph_id        text NOT NULL,
  grant_id        text COLLATE "C" NOT NULL REFERENCES execution_grants (id),
  run_id          text COLLATE "C" NOT NULL,
  trace_id        text,
  status          text NOT NULL CHECK (status = 'running' OR status = 'waiting' OR status = 'done'),
  ok              bigint CHECK (ok = 0 OR ok = 1),
  error_code      text,
  error_message   text,
  result          text,
  waits_for       text CHECK (waits_for = 'review' OR waits_for = 'crash'),
  reply           text,
  attempt         bigint NOT NULL CHECK (attempt >= 1),
  token           bigint NOT NULL,
  era             text NOT NULL,
  expires_at      bigint NOT NULL,
  created_at      bigint NOT NULL,
  completed_at    bigint,
  CONSTRAINT execution_requests_over CHECK ((ok IS NULL) = (completed_at IS NULL) AND (ok IS NULL) = (status <> 'done')),
  CONSTRAINT execution_requests_waiting CHECK (status <> 'waiting' OR waits_for IS NOT NULL),
  CONSTRAINT execution_requests_failed CHECK (ok IS NULL OR (ok = 1) = (error_code IS NULL))
);

CREATE UNIQUE INDEX execution_requests_of_run ON execution_requests (run_id);
CREATE INDEX execution_requests_waiting_first ON execution_requests (run_id) WHERE status = 'waiting';

-- Append-only, numbered through all attempts of a run.
CREATE TABLE execution_events (
  run_id  text COLLATE "C" NOT NULL REFERENCES execution_requests (run_id),
  seq     bigint NOT NULL CHECK (seq >= 1),
  attempt bigint NOT NULL,
  at      bigint NOT NULL,
  kind    text NOT NULL,
  data    text NOT NULL,
  PRIMARY KEY (run_id, seq)
);

CREATE TABLE graph_checkpoints (
  run_id        text COLLATE "C" NOT NULL REFERENCES execution_requests (run_id),
  namespace     text COLLATE "C" NOT NULL,
  checkpoint_id text COLLATE "C" NOT NULL,
  parent_id     text COLLATE "C",
  kind          text NOT NULL,
  state         bytea NOT NULL,
  about_kind    text NOT NULL,
  about         bytea NOT NULL,
  PRIMARY KEY (run_id, namespace, checkpoint_id)
);

-- What tasks have written after a checkpoint.
CREATE TABLE graph_checkpoint_writes (
  run_id        text COLLATE "C" NOT NULL REFERENCES execution_requests (run_id),
  namespace     text COLLATE "C" NOT NULL,
  checkpoint_id text COLLATE "C" NOT NULL,
  task_id       text COLLATE "C" NOT NULL,
  place         bigint NOT NULL,
  path          text NOT NULL,
  channel       text NOT NULL,
  kind          text NOT NULL,
  value         bytea NOT NULL,
  PRIMARY KEY (run_id, namespace, checkpoint_id, task_id, place)
);
