-- Schedules: what should run and when, every revision of that, the ledger of their slots, and who kept time.
-- Times are microseconds since 1970, UTC; slots are whole seconds among them.

ALTER TABLE jobs ADD COLUMN ledger_run TEXT;

ALTER TABLE finished_jobs ADD COLUMN ledger_run TEXT;

CREATE TABLE schedules (
  id             TEXT    NOT NULL PRIMARY KEY,
  owner_user_id  TEXT    NOT NULL,
  state          TEXT    NOT NULL CHECK (state = 'active' OR state = 'paused' OR state = 'broken' OR state = 'deleted'),
  state_reason   TEXT,
  enabled        INTEGER GENERATED ALWAYS AS (state = 'active') VIRTUAL,
  revision       INTEGER NOT NULL CHECK (revision >= 1),
  opened_through INTEGER NOT NULL,
  next_run_at    INTEGER,
  fire_at        INTEGER,
  last_run_at    INTEGER,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  kind           TEXT    NOT NULL,
  input          TEXT    NOT NULL,
  pool           TEXT    NOT NULL,
  priority       INTEGER NOT NULL,
  max_attempts   INTEGER NOT NULL,
  backoff_ms     INTEGER NOT NULL,
  backoff_cap_ms INTEGER NOT NULL,
  timeout_ms     INTEGER,
  cron           TEXT,
  timezone       TEXT    NOT NULL,
  every_s        INTEGER,
  anchor_at      INTEGER,
  once_at        INTEGER,
  start_at       INTEGER,
  end_at         INTEGER,
  overlap        TEXT    NOT NULL CHECK (
    overlap = 'allow' OR overlap = 'skip' OR overlap = 'queue' OR overlap = 'queue_one' OR overlap = 'replace'),
  catch_up       TEXT    NOT NULL CHECK (catch_up = 'none' OR catch_up = 'fire_immediately' OR catch_up = 'spread'),
  catch_up_cap   INTEGER NOT NULL,
  jitter_ms      INTEGER NOT NULL,
  CHECK ((cron IS NOT NULL) + (every_s IS NOT NULL) + (once_at IS NOT NULL) = 1),
  CHECK ((next_run_at IS NULL) = (fire_at IS NULL)),
  CHECK (fire_at IS NULL OR state = 'active')
) STRICT;

CREATE INDEX schedules_due ON schedules (fire_at) WHERE fire_at IS NOT NULL;
CREATE INDEX schedules_of_owner ON schedules (owner_user_id, id);

-- Append-only: what was in force for slots after `effective_from`, until a later revision's.
CREATE TABLE schedule_revisions (
  schedule_id    TEXT    NOT NULL REFERENCES schedules (id),
  number         INTEGER NOT NULL,
  effective_from INTEGER NOT NULL,
  state          TEXT    NOT NULL,
  tz_version     TEXT    NOT NULL,
  recorded_at    INTEGER NOT NULL,
  kind           TEXT    NOT NULL,
  input          TEXT    NOT NULL,
  pool           TEXT    NOT NULL,
  priority       INTEGER NOT NULL,
  max_attempts   INTEGER NOT NULL,
  backoff_ms     INTEGER NOT NULL,
  backoff_cap_ms INTEGER NOT NULL,
  timeout_ms     INTEGER,
  cron           TEXT,
  timezone       TEXT    NOT NULL,
  every_s        INTEGER,
  anchor_at      INTEGER,
  once_at        INTEGER,
  start_at       INTEGER,
  end_at         INTEGER,
  overlap        TEXT    NOT NULL CHECK (
    overlap = 'allow' OR overlap = 'skip' OR overlap = 'queue' OR overlap = 'queue_one' OR overlap = 'replace'),
  catch_up       TEXT    NOT NULL CHECK (catch_up = 'none' OR catch_up = 'fire_immediately' OR catch_up = 'spread'),
  catch_up_cap   INTEGER NOT NULL,
  jitter_ms      INTEGER NOT NULL,
  CHECK ((cron IS NOT NULL) + (every_s IS NOT NULL) + (once_at IS NOT NULL) = 1),
  PRIMARY KEY (schedule_id, number)
) STRICT, WITHOUT ROWID;

-- The ledger. A planned slot has one row: its `own_key` is empty. Manual and backfill runs are told apart by theirs.
CREATE TABLE schedule_runs (
  id            TEXT    NOT NULL PRIMARY KEY,
  schedule_id   TEXT    NOT NULL REFERENCES schedules (id),
  owner_user_id TEXT    NOT NULL,
  revision      INTEGER NOT NULL,
  kind          TEXT    NOT NULL CHECK (kind = 'slot' OR kind = 'manual' OR kind = 'backfill'),
  own_key       TEXT    NOT NULL,
  scheduled_for INTEGER NOT NULL,
  fire_at       INTEGER NOT NULL,
  opened_at     INTEGER NOT NULL,
  status        TEXT    NOT NULL CHECK (
    status = 'pending' OR status = 'running' OR status = 'success' OR status = 'error' OR status = 'skipped' OR
    status = 'cancelled'),
  reason        TEXT,
  detail        TEXT,
  job_id        TEXT,
  run_id        TEXT,
  trace_id      TEXT,
  attempt_count INTEGER NOT NULL DEFAULT 0,
  started_at    INTEGER,
  completed_at  INTEGER,
  error_message TEXT,
  CHECK ((kind = 'slot') = (own_key = '')),
  CHECK ((completed_at IS NULL) = (status IN ('pending', 'running')))
) STRICT;

CREATE UNIQUE INDEX schedule_runs_one_per_slot ON schedule_runs (schedule_id, scheduled_for, own_key);
CREATE UNIQUE INDEX schedule_runs_one_per_manual_key ON schedule_runs (schedule_id, own_key) WHERE kind = 'manual';
CREATE INDEX schedule_runs_by_key ON schedule_runs (schedule_id, own_key, scheduled_for) WHERE own_key <> '';
CREATE INDEX schedule_runs_in_flight ON schedule_runs (schedule_id) WHERE completed_at IS NULL;

-- Planned slots without rows, and why.
CREATE TABLE schedule_gaps (
  schedule_id TEXT    NOT NULL REFERENCES schedules (id),
  first_slot  INTEGER NOT NULL,
  last_slot   INTEGER NOT NULL,
  slots       INTEGER NOT NULL CHECK (slots >= 1),
  reason      TEXT    NOT NULL CHECK (reason = 'outage' OR reason = 'catch_up_cap' OR reason = 'superseded'),
  revision    INTEGER NOT NULL,
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (schedule_id, first_slot),
  CHECK (first_slot <= last_slot)
) STRICT, WITHOUT ROWID;

-- Missed slots that are still to be caught up: from `next_slot` through `last_slot`, the next of them at `due_at`.
CREATE TABLE schedule_arrears (
  schedule_id TEXT    NOT NULL REFERENCES schedules (id),
  first_slot  INTEGER NOT NULL,
  next_slot   INTEGER NOT NULL,
  last_slot   INTEGER NOT NULL,
  slots       INTEGER NOT NULL CHECK (slots >= 1),
  due_at      INTEGER NOT NULL,
  every_us    INTEGER NOT NULL CHECK (every_us >= 0),
  revision    INTEGER NOT NULL,
  PRIMARY KEY (schedule_id, first_slot)
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_arrears_due ON schedule_arrears (due_at);

-- Spans in which at least one timekeeper was alive.
CREATE TABLE coverage (
  started_at INTEGER NOT NULL PRIMARY KEY,
  alive_at   INTEGER NOT NULL,
  CHECK (started_at <= alive_at)
) STRICT;

-- Runs that were asked to stop: whoever has not by then loses its claim, and its lane goes on.
CREATE TABLE revocations (
  job_id TEXT    NOT NULL PRIMARY KEY,
  due_at INTEGER NOT NULL,
  reason TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX revocations_due ON revocations (due_at);
