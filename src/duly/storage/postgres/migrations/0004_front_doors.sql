-- What the front doors keep: tokens, requests that carry idempotency keys, schedules that programs declare.

CREATE TABLE api_tokens (
  id            text COLLATE "C" NOT NULL PRIMARY KEY,
  owner_user_id text COLLATE "C" NOT NULL,
  role          text    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  name          text    NOT NULL,
  secret_hash   text COLLATE "C" NOT NULL,
  created_at    bigint  NOT NULL,
  expires_at    bigint,
  revoked_at    bigint,
  last_used_at  bigint
);

CREATE UNIQUE INDEX api_tokens_by_hash ON api_tokens (secret_hash);
CREATE INDEX api_tokens_of_owner ON api_tokens (owner_user_id, id);

-- A claim without a status is running, until its lease runs out by the clock of its era.
CREATE TABLE idempotency_keys (
  owner_user_id text COLLATE "C" NOT NULL,
  route         text COLLATE "C" NOT NULL,
  key           text COLLATE "C" NOT NULL,
  hash          text    NOT NULL,
  draw          text    NOT NULL,
  token         bigint  NOT NULL,
  era           text    NOT NULL,
  expires_at    bigint  NOT NULL,
  claimed_at    bigint  NOT NULL,
  status        bigint,
  content_type  text,
  headers       text,
  body          bytea,
  PRIMARY KEY (owner_user_id, route, key),
  CHECK ((status IS NULL) = (body IS NULL)),
  CHECK ((status IS NULL) = (content_type IS NULL)),
  CHECK ((status IS NULL) = (headers IS NULL))
);

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (claimed_at);

CREATE TABLE declared_schedules (
  schedule_id   text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES schedules (id),
  owner_user_id text COLLATE "C" NOT NULL,
  program       text COLLATE "C" NOT NULL
);

CREATE INDEX declared_schedules_of_program ON declared_schedules (owner_user_id, program, schedule_id);

-- Ids are drawn in order of time, so these answer the newest first.
CREATE INDEX schedule_runs_of_owner ON schedule_runs (owner_user_id, id);
CREATE INDEX schedule_runs_of_schedule ON schedule_runs (schedule_id, id);

-- Few are not active, and those that are move with every slot: they are counted as the rest.
CREATE INDEX schedules_aside ON schedules (state) WHERE state <> 'active';
