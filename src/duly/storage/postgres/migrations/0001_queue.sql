-- The durable queue: live jobs, finished jobs, pools, sessions, tickets. Times are microseconds since 1970, UTC.

CREATE TABLE pools (
  name       text COLLATE "C" NOT NULL PRIMARY KEY,
  slots      bigint  NOT NULL CHECK (slots >= 0),
  used       bigint  NOT NULL DEFAULT 0 CHECK (used >= 0),
  tickets    bigint  NOT NULL DEFAULT 0 CHECK (tickets >= 0),
  parked     bigint  NOT NULL DEFAULT 0 CHECK (parked >= 0),
  mode       text    NOT NULL DEFAULT 'open' CHECK (mode IN ('open', 'paused', 'draining')),
  prefetch   bigint  NOT NULL DEFAULT 0 CHECK (prefetch >= 0),
  ageing_ms  bigint  CHECK (ageing_ms > 0)
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE sessions (
  id         text COLLATE "C" NOT NULL PRIMARY KEY,
  name       text COLLATE "C" NOT NULL,
  capacity   bigint  NOT NULL CHECK (capacity >= 1),
  busy       bigint  NOT NULL DEFAULT 0 CONSTRAINT sessions_within_capacity CHECK (busy BETWEEN 0 AND capacity),
  lease      bigint  NOT NULL,
  era        text COLLATE "C" NOT NULL,
  expires_at bigint  NOT NULL,
  started_at bigint  NOT NULL,
  seen_at    bigint  NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE jobs (
  id             text COLLATE "C" NOT NULL PRIMARY KEY,
  kind           text    NOT NULL,
  payload        text    NOT NULL,
  key            text COLLATE "C",
  lane           text COLLATE "C",
  pool           text COLLATE "C" NOT NULL,
  resources      text COLLATE "C",
  priority       bigint  NOT NULL,
  rank           bigint  NOT NULL,
  position       bigint  NOT NULL,
  run_at         bigint  NOT NULL,
  created_at     bigint  NOT NULL,
  state          text    NOT NULL
                 CHECK (state IN ('scheduled', 'waiting', 'ready', 'parked', 'backoff', 'claimed', 'running')),
  parked_on      text COLLATE "C",
  attempt        bigint  NOT NULL CHECK (attempt BETWEEN 1 AND max_attempts),
  max_attempts   bigint  NOT NULL,
  backoff_ms     bigint  NOT NULL,
  backoff_cap_ms bigint  NOT NULL,
  timeout_ms     bigint ,
  retry_of       text COLLATE "C",
  chain          text COLLATE "C" NOT NULL,
  session        text COLLATE "C",
  token          bigint ,
  started_at     bigint ,
  cancel_reason  text,
  CHECK ((session IS NULL) = (state NOT IN ('claimed', 'running'))),
  CHECK ((session IS NULL) = (token IS NULL)),
  CHECK ((parked_on IS NULL) = (state <> 'parked'))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE UNIQUE INDEX jobs_one_head_per_lane ON jobs (lane) WHERE lane IS NOT NULL AND state NOT IN ('scheduled', 'waiting');
CREATE UNIQUE INDEX jobs_one_per_key ON jobs (key) WHERE key IS NOT NULL;
CREATE INDEX jobs_ready ON jobs (pool, rank, position, created_at, id) WHERE state = 'ready';
CREATE INDEX jobs_waiting ON jobs (lane, rank, position, created_at, id) WHERE state = 'waiting';
CREATE INDEX jobs_due ON jobs (run_at) WHERE state IN ('scheduled', 'backoff');
CREATE INDEX jobs_parked ON jobs (parked_on, rank, position, created_at, id) WHERE state = 'parked';
CREATE INDEX jobs_of_session ON jobs (session) WHERE session IS NOT NULL;
CREATE INDEX jobs_of_chain ON jobs (chain) WHERE retry_of IS NOT NULL;

CREATE TABLE finished_jobs (
  id           text COLLATE "C" NOT NULL PRIMARY KEY,
  kind         text    NOT NULL,
  payload      text    NOT NULL,
  key          text COLLATE "C",
  lane         text COLLATE "C",
  pool         text COLLATE "C" NOT NULL,
  resources    text COLLATE "C",
  priority     bigint  NOT NULL,
  run_at       bigint  NOT NULL,
  created_at   bigint  NOT NULL,
  attempt      bigint  NOT NULL,
  max_attempts bigint  NOT NULL,
  retry_of     text COLLATE "C",
  chain        text COLLATE "C" NOT NULL,
  session      text COLLATE "C",
  token        bigint ,
  started_at   bigint ,
  finished_at  bigint  NOT NULL,
  status       text    NOT NULL CHECK (status IN ('COMPLETED', 'FAILED', 'SKIPPED', 'CANCELLED')),
  error        text,
  exit_code    bigint ,
  result       text
);

CREATE INDEX finished_jobs_by_time ON finished_jobs (finished_at);
CREATE INDEX finished_jobs_of_chain ON finished_jobs (chain) WHERE retry_of IS NOT NULL;

CREATE TABLE tickets (
  id         text COLLATE "C" NOT NULL PRIMARY KEY,
  pool       text COLLATE "C" NOT NULL,
  session    text COLLATE "C" NOT NULL,
  created_at bigint  NOT NULL,
  expires_at bigint  NOT NULL,
  state      text    NOT NULL CHECK (state IN ('waiting', 'held'))
);

CREATE INDEX tickets_in_turn ON tickets (pool, created_at, id) WHERE state = 'waiting';
CREATE INDEX tickets_of_session ON tickets (session);

INSERT INTO pools (name, slots) VALUES
  ('default', 1), ('graphs', 16), ('flows', 16), ('webhooks', 32), ('ollama', 1);
