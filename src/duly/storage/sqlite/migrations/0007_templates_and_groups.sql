-- Templates, where jobs came from, retries by hand, and groups. Ended jobs now keep what is needed to try them again.

ALTER TABLE jobs ADD COLUMN member TEXT;

ALTER TABLE finished_jobs ADD COLUMN backoff_ms INTEGER;
ALTER TABLE finished_jobs ADD COLUMN backoff_cap_ms INTEGER;
ALTER TABLE finished_jobs ADD COLUMN timeout_ms INTEGER;
ALTER TABLE finished_jobs ADD COLUMN retryable INTEGER;

-- Few jobs fail, and those that did are looked for among all that ended.
CREATE INDEX finished_jobs_failed ON finished_jobs (id) WHERE status = 'FAILED';

CREATE TABLE templates (
  name          TEXT NOT NULL PRIMARY KEY,
  owner_user_id TEXT NOT NULL,
  version       INTEGER NOT NULL CHECK (version >= 1),
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  spec          TEXT NOT NULL
) STRICT;

CREATE INDEX templates_of_owner ON templates (owner_user_id, name);

-- By chain, because a chain's first job gives it its name and all its attempts have one origin.
CREATE TABLE job_origins (
  chain_id         TEXT NOT NULL PRIMARY KEY,
  owner_user_id    TEXT NOT NULL,
  template         TEXT,
  template_version INTEGER,
  params_schema    TEXT,
  webhook_url      TEXT
) STRICT;

CREATE TABLE manual_retries (
  job_id   TEXT NOT NULL PRIMARY KEY,
  chain    TEXT NOT NULL,
  key      TEXT,
  attempt  INTEGER NOT NULL,
  asked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX manual_retries_one_per_key ON manual_retries (chain, key) WHERE key IS NOT NULL;
CREATE INDEX manual_retries_of_chain ON manual_retries (chain);

CREATE TABLE job_groups (
  id              TEXT NOT NULL PRIMARY KEY,
  owner_user_id   TEXT NOT NULL,
  name            TEXT NOT NULL,
  mode            TEXT NOT NULL CHECK (mode IN ('parallel', 'sequential')),
  stop_on_failure INTEGER NOT NULL CHECK (stop_on_failure IN (0, 1)),
  webhook_url     TEXT,
  size            INTEGER NOT NULL CHECK (size >= 1),
  open            INTEGER NOT NULL CHECK (open BETWEEN 0 AND size),
  status          TEXT NOT NULL CHECK (status IN ('RUNNING', 'COMPLETED', 'PARTIAL', 'CANCELLED')),
  cancel_reason   TEXT,
  created_at      INTEGER NOT NULL,
  ended_at        INTEGER,
  CHECK ((ended_at IS NULL) = (status = 'RUNNING')),
  CONSTRAINT group_ends_with_its_members CHECK (status = 'RUNNING' OR open = 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_groups_of_owner ON job_groups (owner_user_id, id);
CREATE INDEX job_groups_by_time ON job_groups (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE group_members (
  id        TEXT NOT NULL PRIMARY KEY,
  group_id  TEXT NOT NULL,
  place     INTEGER NOT NULL,
  name      TEXT,
  job_id    TEXT NOT NULL,
  state     TEXT NOT NULL CHECK (state IN ('pending', 'live', 'COMPLETED', 'FAILED', 'SKIPPED', 'CANCELLED')),
  reason    TEXT,
  last_job  TEXT,
  ended_at  INTEGER,
  pool      TEXT NOT NULL,
  resources TEXT,
  spec      TEXT NOT NULL,
  CHECK ((ended_at IS NULL) = (state IN ('pending', 'live')))
) STRICT;

CREATE UNIQUE INDEX group_members_in_order ON group_members (group_id, place);
CREATE INDEX group_members_by_chain ON group_members (job_id);
CREATE INDEX group_members_pending ON group_members (pool) WHERE state = 'pending';

-- What a worker was handed stays as it was handed over; of what has ended only its end may be corrected. A claim's token is
-- no part of that record, and is voided when others ended the run. No claim and no report writes these columns.
CREATE TRIGGER jobs_params_fixed BEFORE UPDATE OF kind, payload ON jobs
WHEN OLD.state IN ('claimed', 'running')
BEGIN
  SELECT RAISE(ABORT, 'jobs_params_fixed');
END;

CREATE TRIGGER finished_jobs_fixed BEFORE UPDATE OF
  id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of, chain,
  session, started_at, ledger_run, backoff_ms, backoff_cap_ms, timeout_ms, retryable ON finished_jobs
BEGIN
  SELECT RAISE(ABORT, 'finished_jobs_fixed');
END;

CREATE TRIGGER finished_jobs_token_fixed BEFORE UPDATE OF token ON finished_jobs
WHEN NEW.token IS NOT NULL
BEGIN
  SELECT RAISE(ABORT, 'finished_jobs_fixed');
END;
