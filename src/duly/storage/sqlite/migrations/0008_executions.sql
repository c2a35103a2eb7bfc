-- Executions of graphs: one row for each key, what they told, and what they left to go on from.

-- `ok` is null until it is over; `expires_at` is read by the clock of its era. `run_id` and `trace_id` stay through all attempts.
CREATE TABLE execution_requests (
  idempotency_key TEXT    NOT NULL PRIMARY KEY,
  request_hash    TEXT    NOT NULL,
  request         TEXT    NOT NULL,
  graph_id        TEXT    NOT NULL,
  grant_id        TEXT    NOT NULL REFERENCES execution_grants (id),
  run_id          TEXT    NOT NULL,
  trace_id        TEXT,
  status          TEXT    NOT NULL CHECK (status = 'running' OR status = 'waiting' OR status = 'done'),
  ok              INTEGER CHECK (ok = 0 OR ok = 1),
  error_code      TEXT,
  error_message   TEXT,
  result          TEXT,
  waits_for       TEXT    CHECK (waits_for = 'review' OR waits_for = 'crash'),
  reply           TEXT,
  attempt         INTEGER NOT NULL CHECK (attempt >= 1),
  token           INTEGER NOT NULL,
  era             TEXT    NOT NULL,
  expires_at      INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  completed_at    INTEGER,
  CONSTRAINT execution_requests_over CHECK ((ok IS NULL) = (completed_at IS NULL) AND (ok IS NULL) = (status <> 'done')),
  CONSTRAINT execution_requests_waiting CHECK (status <> 'waiting' OR waits_for IS NOT NULL),
  CONSTRAINT execution_requests_failed CHECK (ok IS NULL OR (ok = 1) = (error_code IS NULL))
) STRICT;

CREATE UNIQUE INDEX execution_requests_of_run ON execution_requests (run_id);
CREATE INDEX execution_requests_waiting_first ON execution_requests (run_id) WHERE status = 'waiting';

-- Append-only, numbered through all attempts of a run.
CREATE TABLE execution_events (
  run_id  TEXT    NOT NULL REFERENCES execution_requests (run_id),
  seq     INTEGER NOT NULL CHECK (seq >= 1),
  attempt INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  kind    TEXT    NOT NULL,
  data    TEXT    NOT NULL,
  PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE graph_checkpoints (
  run_id        TEXT NOT NULL REFERENCES execution_requests (run_id),
  namespace     TEXT NOT NULL,
  checkpoint_id TEXT NOT NULL,
  parent_id     TEXT,
  kind          TEXT NOT NULL,
  state         BLOB NOT NULL,
  about_kind    TEXT NOT NULL,
  about         BLOB NOT NULL,
  PRIMARY KEY (run_id, namespace, checkpoint_id)
) STRICT;

-- What tasks have written after a checkpoint.
CREATE TABLE graph_checkpoint_writes (
  run_id        TEXT    NOT NULL REFERENCES execution_requests (run_id),
  namespace     TEXT    NOT NULL,
  checkpoint_id TEXT    NOT NULL,
  task_id       TEXT    NOT NULL,
  place         INTEGER NOT NULL,
  path          TEXT    NOT NULL,
  channel       TEXT    NOT NULL,
  kind          TEXT    NOT NULL,
  value         BLOB    NOT NULL,
  PRIMARY KEY (run_id, namespace, checkpoint_id, task_id, place)
) STRICT;
