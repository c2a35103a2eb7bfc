-- Schedules: what should run and when, every revision of that, the ledger of their slots, and who kept time.
-- Times are microseconds since 1970, UTC; slots are whole seconds among them.

ALTER TABLE jobs ADD COLUMN ledger_run text COLLATE "C";

ALTER TABLE finished_jobs ADD COLUMN ledger_run text COLLATE "C";

CREATE TABLE schedules (
  id             text COLLATE "C" NOT NULL PRIMARY KEY,
  owner_user_id  text COLLATE "C" NOT NULL,
  state          text    NOT NULL CHECK (state IN ('active', 'paused', 'broken', 'deleted')),
  state_reason   text,
  enabled        bigint  GENERATED ALWAYS AS (CASE WHEN state = 'active' THEN 1 ELSE 0 END) STORED,
  revision       bigint  NOT NULL CHECK (revision >= 1),
  opened_through bigint  NOT NULL,
  next_run_at    bigint ,
  fire_at        bigint ,
  last_run_at    bigint ,
  created_at     bigint  NOT NULL,
  updated_at     bigint  NOT NULL,
  kind           text    NOT NULL,
  input          text    NOT NULL,
  pool           text COLLATE "C" NOT NULL,
  priority       bigint  NOT NULL,
  max_attempts   bigint  NOT NULL,
  backoff_ms     bigint  NOT NULL,
  backoff_cap_ms bigint  NOT NULL,
  timeout_ms     bigint ,
  cron           text,
  timezone       text    NOT NULL,
  every_s        bigint ,
  anchor_at      bigint ,
  once_at        bigint ,
  start_at       bigint ,
  end_at         bigint ,
  overlap        text    NOT NULL CHECK (overlap IN ('allow', 'skip', 'queue', 'queue_one', 'replace')),
  catch_up       text    NOT NULL CHECK (catch_up IN ('none', 'fire_immediately', 'spread')),
  catch_up_cap   bigint  NOT NULL,
  jitter_ms      bigint  NOT NULL,
  CHECK (num_nonnulls(cron, every_s, once_at) = 1),
  CHECK ((next_run_at IS NULL) = (fire_at IS NULL)),
  CHECK (fire_at IS NULL OR state = 'active')
);

CREATE INDEX schedules_due ON schedules (fire_at) WHERE fire_at IS NOT NULL;
CREATE INDEX schedules_of_owner ON schedules (owner_user_id, id);

-- Append-only: what was in force for slots after `effective_from`, until a later revision's.
CREATE TABLE schedule_revisions (
  schedule_id    text COLLATE "C" NOT NULL REFERENCES schedules (id),
  number         bigint  NOT NULL,
  effective_from bigint  NOT NULL,
  state          text    NOT NULL,
  tz_version     text    NOT NULL,
  recorded_at    bigint  NOT NULL,
  kind           text    NOT NULL,
  input          text    NOT NULL,
  pool           text COLLATE "C" NOT NULL,
  priority       bigint  NOT NULL,
  max_attempts   bigint  NOT NULL,
  backoff_ms     bigint  NOT NULL,
  backoff_cap_ms bigint  NOT NULL,
  timeout_ms     bigint ,
  cron           text,
  timezone       text    NOT NULL,
  every_s        bigint ,
  anchor_at      bigint ,
  once_at        bigint ,
  start_at       bigint ,
  end_at         bigint ,
  overlap        text    NOT NULL CHECK (overlap IN ('allow', 'skip', 'queue', 'queue_one', 'replace')),
  catch_up       text    NOT NULL CHECK (catch_up IN ('none', 'fire_immediately', 'spread')),
  catch_up_cap   bigint  NOT NULL,
  jitter_ms      bigint  NOT NULL,
  CHECK (num_nonnulls(cron, every_s, once_at) = 1),
  PRIMARY KEY (schedule_id, number)
);

-- The ledger. A planned slot has one row: its `own_key` is empty. Manual and backfill runs are told apart by theirs.
CREATE TABLE schedule_runs (
  id            text COLLATE "C" NOT NULL PRIMARY KEY,
  schedule_id   text COLLATE "C" NOT NULL REFERENCES schedules (id),
  owner_user_id text COLLATE "C" NOT NULL,
  revision      bigint  NOT NULL,
  kind          text    NOT NULL CHECK (kind IN ('slot', 'manual', 'backfill')),
  own_key       text COLLATE "C" NOT NULL,
  scheduled_for bigint  NOT NULL,
  fire_at       bigint  NOT NULL,
  opened_at     bigint  NOT NULL,
  status        text    NOT NULL CHECK (status IN ('pending', 'running', 'success', 'error', 'skipped', 'cancelled')),
  reason        text,
  detail        text,
  job_id        text COLLATE "C",
  run_id        text,
  trace_id      text,
  attempt_count bigint  NOT NULL DEFAULT 0,
  started_at    bigint ,
  completed_at  bigint ,
  error_message text,
  CHECK ((kind = 'slot') = (own_key = '')),
  CHECK ((completed_at IS NULL) = (status IN ('pending', 'running')))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX schedule_runs_one_per_slot ON schedule_runs (schedule_id, scheduled_for, own_key);
CREATE UNIQUE INDEX schedule_runs_one_per_manual_key ON schedule_runs (schedule_id, own_key) WHERE kind = 'manual';
CREATE INDEX schedule_runs_by_key ON schedule_runs (schedule_id, own_key, scheduled_for) WHERE own_key <> '';
CREATE INDEX schedule_runs_in_flight ON schedule_runs (schedule_id) WHERE completed_at IS NULL;

-- Planned slots without rows, and why.
CREATE TABLE schedule_gaps (
  schedule_id text COLLATE "C" NOT NULL REFERENCES schedules (id),
  first_slot  bigint  NOT NULL,
  last_slot   bigint  NOT NULL,
  slots       bigint  NOT NULL CHECK (slots >= 1),
  reason      text    NOT NULL CHECK (reason IN ('outage', 'catch_up_cap', 'superseded')),
  revision    bigint  NOT NULL,
  recorded_at bigint  NOT NULL,
  PRIMARY KEY (schedule_id, first_slot),
  CHECK (first_slot <= last_slot)
);

-- Missed slots that are still to be caught up: from `next_slot` through `last_slot`, the next of them at `due_at`.
CREATE TABLE schedule_arrears (
  schedule_id text COLLATE "C" NOT NULL REFERENCES schedules (id),
  first_slot  bigint  NOT NULL,
  next_slot   bigint  NOT NULL,
  last_slot   bigint  NOT NULL,
  slots       bigint  NOT NULL CHECK (slots >= 1),
  due_at      bigint  NOT NULL,
  every_us    bigint  NOT NULL CHECK (every_us >= 0),
  revision    bigint  NOT NULL,
  PRIMARY KEY (schedule_id, first_slot)
);

CREATE INDEX schedule_arrears_due ON schedule_arrears (due_at);

-- Spans in which at least one timekeeper was alive.
CREATE TABLE coverage (
  started_at bigint  NOT NULL PRIMARY KEY,
  alive_at   bigint  NOT NULL,
  CHECK (started_at <= alive_at)
);

-- Runs that were asked to stop: whoever has not by then loses its claim, and its lane goes on.
CREATE TABLE revocations (
  job_id text COLLATE "C" NOT NULL PRIMARY KEY,
  due_at bigint  NOT NULL,
  reason text    NOT NULL
);

CREATE INDEX revocations_due ON revocations (due_at);
