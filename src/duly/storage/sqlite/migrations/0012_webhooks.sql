-- Webhooks: who wants to be told, what there is to tell, and what became of telling it.

CREATE TABLE webhook_endpoints (
  id               TEXT NOT NULL PRIMARY KEY,
  owner_user_id    TEXT NOT NULL,
  url              TEXT NOT NULL,
  host             TEXT NOT NULL,
  events           TEXT NOT NULL,
  everything       INTEGER NOT NULL CHECK (everything IN (0, 1)),
  note             TEXT NOT NULL,
  signing_key      TEXT NOT NULL,
  old_signing_key  TEXT,
  old_key_until    INTEGER,
  disabled_at      INTEGER,
  disabled_reason  TEXT,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
) STRICT;

CREATE UNIQUE INDEX webhook_endpoints_one_per_url ON webhook_endpoints (owner_user_id, url);

-- What has ended since a courier last looked, each as it was then.
CREATE TABLE webhook_outbox (
  seq           INTEGER NOT NULL PRIMARY KEY,
  noun          TEXT NOT NULL CHECK (noun IN ('job', 'group', 'run')),
  owner_user_id TEXT,
  url           TEXT,
  occurred_at   INTEGER NOT NULL,
  subject       TEXT NOT NULL
) STRICT;

CREATE TABLE webhook_events (
  id            TEXT NOT NULL PRIMARY KEY,
  type          TEXT NOT NULL,
  owner_user_id TEXT,
  subject_id    TEXT NOT NULL,
  occurred_at   INTEGER NOT NULL,
  body          TEXT NOT NULL
) STRICT;

-- Pending ones are due at `due_at`; while a courier holds one, that is when its claim ends.
CREATE TABLE webhook_deliveries (
  id          TEXT NOT NULL PRIMARY KEY,
  event_id    TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  type        TEXT NOT NULL,
  subject_id  TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  tries       INTEGER NOT NULL,
  attempts    INTEGER NOT NULL,
  due_at      INTEGER NOT NULL,
  give_up_at  INTEGER NOT NULL,
  claim       TEXT,
  status      INTEGER,
  error       TEXT,
  created_at  INTEGER NOT NULL,
  ended_at    INTEGER,
  CHECK ((ended_at IS NULL) = (state = 'pending')),
  CHECK (claim IS NULL OR state = 'pending')
) STRICT;

CREATE UNIQUE INDEX webhook_deliveries_once ON webhook_deliveries (event_id, endpoint_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_of_subject ON webhook_deliveries (subject_id);
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE webhook_attempts (
  delivery_id TEXT NOT NULL,
  number      INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  ms          INTEGER NOT NULL,
  status      INTEGER,
  error       TEXT,
  excerpt     TEXT NOT NULL,
  PRIMARY KEY (delivery_id, number)
) STRICT;

-- Hosts that have failed of late, as each owner's calls have met them.
CREATE TABLE webhook_hosts (
  owner_user_id TEXT NOT NULL,
  host          TEXT NOT NULL,
  failures      INTEGER NOT NULL,
  rests         INTEGER NOT NULL,
  open_until    INTEGER,
  probe         TEXT,
  PRIMARY KEY (owner_user_id, host)
) STRICT;

-- Whoever ends a thing writes it down to be told, in the same statement. While nobody asked to be told, that is one look at an
-- empty table.
CREATE TRIGGER finished_jobs_told AFTER INSERT ON finished_jobs
WHEN EXISTS (SELECT 1 FROM webhook_endpoints)
BEGIN
  INSERT INTO webhook_outbox (noun, owner_user_id, url, occurred_at, subject)
  VALUES ('job', COALESCE((SELECT owner_user_id FROM job_origins WHERE chain_id = NEW.chain),
                           (SELECT owner_user_id FROM schedule_runs WHERE id = NEW.ledger_run)), 
          (SELECT webhook_url FROM job_origins WHERE chain_id = NEW.chain), NEW.finished_at, json_array(
    NEW.id, NEW.kind, NEW.payload, NEW.key, NEW.lane, NEW.pool, NEW.resources, NEW.priority, NEW.run_at, NEW.created_at, NEW.attempt, NEW.max_attempts, NEW.retry_of, NEW.chain,
    NEW.session, NEW.token, NEW.started_at, NEW.finished_at, NEW.status, NEW.error, NEW.exit_code, NEW.result, NEW.ledger_run, NEW.backoff_ms,
    NEW.backoff_cap_ms, NEW.timeout_ms, NEW.retryable));
END;

CREATE TRIGGER job_groups_told AFTER UPDATE OF status ON job_groups
WHEN OLD.status = 'RUNNING' AND NEW.status <> 'RUNNING' AND EXISTS (SELECT 1 FROM webhook_endpoints)
BEGIN
  INSERT INTO webhook_outbox (noun, owner_user_id, url, occurred_at, subject)
  VALUES ('group', NEW.owner_user_id, NEW.webhook_url, NEW.ended_at, json_array(
    NEW.id, NEW.owner_user_id, NEW.name, NEW.mode, NEW.stop_on_failure, NEW.webhook_url, NEW.size, NEW.open, NEW.status, NEW.cancel_reason, NEW.created_at,
    NEW.ended_at));
END;

CREATE TRIGGER schedule_runs_told AFTER UPDATE OF completed_at ON schedule_runs
WHEN OLD.completed_at IS NULL AND NEW.completed_at IS NOT NULL AND EXISTS (SELECT 1 FROM webhook_endpoints)
BEGIN
  INSERT INTO webhook_outbox (noun, owner_user_id, url, occurred_at, subject)
  VALUES ('run', NEW.owner_user_id, NULL, NEW.completed_at, json_array(
    NEW.id, NEW.schedule_id, NEW.owner_user_id, NEW.revision, NEW.kind, NEW.own_key, NEW.scheduled_for, NEW.fire_at, NEW.opened_at, NEW.status, NEW.reason,
    NEW.detail, NEW.job_id, NEW.run_id, NEW.trace_id, NEW.attempt_count, NEW.started_at, NEW.completed_at, NEW.error_message));
END;

CREATE TRIGGER schedule_runs_told_at_once AFTER INSERT ON schedule_runs
WHEN NEW.completed_at IS NOT NULL AND EXISTS (SELECT 1 FROM webhook_endpoints)
BEGIN
  INSERT INTO webhook_outbox (noun, owner_user_id, url, occurred_at, subject)
  VALUES ('run', NEW.owner_user_id, NULL, NEW.completed_at, json_array(
    NEW.id, NEW.schedule_id, NEW.owner_user_id, NEW.revision, NEW.kind, NEW.own_key, NEW.scheduled_for, NEW.fire_at, NEW.opened_at, NEW.status, NEW.reason,
    NEW.detail, NEW.job_id, NEW.run_id, NEW.trace_id, NEW.attempt_count, NEW.started_at, NEW.completed_at, NEW.error_message));
END;
