-- The durable queue: live jobs, finished jobs, pools, sessions, tickets. Times are microseconds since 1970, UTC.
-- Words are compared one by one: for a list of more than two, SQLite builds a table whenever a row is written, which costs
-- as much as writing the row.

CREATE TABLE pools (
  name       TEXT    NOT NULL PRIMARY KEY,
  slots      INTEGER NOT NULL CHECK (slots >= 0),
  used       INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0),
  tickets    INTEGER NOT NULL DEFAULT 0 CHECK (tickets >= 0),
  parked     INTEGER NOT NULL DEFAULT 0 CHECK (parked >= 0),
  mode       TEXT    NOT NULL DEFAULT 'open' CHECK (mode = 'open' OR mode = 'paused' OR mode = 'draining'),
  prefetch   INTEGER NOT NULL DEFAULT 0 CHECK (prefetch >= 0),
  ageing_ms  INTEGER CHECK (ageing_ms > 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  id         TEXT    NOT NULL PRIMARY KEY,
  name       TEXT    NOT NULL,
  capacity   INTEGER NOT NULL CHECK (capacity >= 1),
  busy       INTEGER NOT NULL DEFAULT 0 CONSTRAINT sessions_within_capacity CHECK (busy BETWEEN 0 AND capacity),
  lease      INTEGER NOT NULL,
  era        TEXT    NOT NULL,
  expires_at INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- With a rowid, because rows this wide make a tree by id deep and its pages costly to change: claims took twice as long.
CREATE TABLE jobs (
  id             TEXT    NOT NULL PRIMARY KEY,
  kind           TEXT    NOT NULL,
  payload        TEXT    NOT NULL,
  key            TEXT,
  lane           TEXT,
  pool           TEXT    NOT NULL,
  resources      TEXT,
  priority       INTEGER NOT NULL,
  rank           INTEGER NOT NULL,
  position       INTEGER NOT NULL,
  run_at         INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  state          TEXT    NOT NULL CHECK (
    state = 'scheduled' OR state = 'waiting' OR state = 'ready' OR state = 'parked' OR state = 'backoff' OR
    state = 'claimed' OR state = 'running'),
  parked_on      TEXT,
  attempt        INTEGER NOT NULL CHECK (attempt BETWEEN 1 AND max_attempts),
  max_attempts   INTEGER NOT NULL,
  backoff_ms     INTEGER NOT NULL,
  backoff_cap_ms INTEGER NOT NULL,
  timeout_ms     INTEGER,
  retry_of       TEXT,
  chain          TEXT    NOT NULL,
  session        TEXT,
  token          INTEGER,
  started_at     INTEGER,
  cancel_reason  TEXT,
  CHECK ((session IS NULL) = (state NOT IN ('claimed', 'running'))),
  CHECK ((session IS NULL) = (token IS NULL)),
  CHECK ((parked_on IS NULL) = (state <> 'parked'))
) STRICT;

CREATE UNIQUE INDEX jobs_one_head_per_lane ON jobs (lane) WHERE lane IS NOT NULL AND state NOT IN ('scheduled', 'waiting');
CREATE UNIQUE INDEX jobs_one_per_key ON jobs (key) WHERE key IS NOT NULL;
CREATE INDEX jobs_ready ON jobs (pool, rank, position, created_at, id) WHERE state = 'ready';
CREATE INDEX jobs_waiting ON jobs (lane, rank, position, created_at, id) WHERE state = 'waiting';
CREATE INDEX jobs_due ON jobs (run_at) WHERE state IN ('scheduled', 'backoff');
CREATE INDEX jobs_parked ON jobs (parked_on, rank, position, created_at, id) WHERE state = 'parked';
CREATE INDEX jobs_of_session ON jobs (session) WHERE session IS NOT NULL;
CREATE INDEX jobs_of_chain ON jobs (chain) WHERE retry_of IS NOT NULL;

CREATE TABLE finished_jobs (
  id           TEXT    NOT NULL PRIMARY KEY,
  kind         TEXT    NOT NULL,
  payload      TEXT    NOT NULL,
  key          TEXT,
  lane         TEXT,
  pool         TEXT    NOT NULL,
  resources    TEXT,
  priority     INTEGER NOT NULL,
  run_at       INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  attempt      INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  retry_of     TEXT,
  chain        TEXT    NOT NULL,
  session      TEXT,
  token        INTEGER,
  started_at   INTEGER,
  finished_at  INTEGER NOT NULL,
  status       TEXT    NOT NULL CHECK (
    status = 'COMPLETED' OR status = 'FAILED' OR status = 'SKIPPED' OR status = 'CANCELLED'),
  error        TEXT,
  exit_code    INTEGER,
  result       TEXT
) STRICT;

CREATE INDEX finished_jobs_by_time ON finished_jobs (finished_at);
CREATE INDEX finished_jobs_of_chain ON finished_jobs (chain) WHERE retry_of IS NOT NULL;

CREATE TABLE tickets (
  id         TEXT    NOT NULL PRIMARY KEY,
  pool       TEXT    NOT NULL,
  session    TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  state      TEXT    NOT NULL CHECK (state IN ('waiting', 'held'))
) STRICT, WITHOUT ROWID;

CREATE INDEX tickets_in_turn ON tickets (pool, created_at, id) WHERE state = 'waiting';
CREATE INDEX tickets_of_session ON tickets (session);

INSERT INTO pools (name, slots) VALUES
  ('default', 1), ('graphs', 16), ('flows', 16), ('webhooks', 32), ('ollama', 1);
