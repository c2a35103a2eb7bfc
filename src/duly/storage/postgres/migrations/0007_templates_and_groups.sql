-- Templates, where jobs came from, retries by hand, and groups. Ended jobs now keep what is needed to try them again.

ALTER TABLE jobs ADD COLUMN member text COLLATE "C";

ALTER TABLE finished_jobs ADD COLUMN backoff_ms bigint;
ALTER TABLE finished_jobs ADD COLUMN backoff_cap_ms bigint;
ALTER TABLE finished_jobs ADD COLUMN timeout_ms bigint;
ALTER TABLE finished_jobs ADD COLUMN retryable bigint;

-- Few jobs fail, and those that did are looked for among all that ended.
CREATE INDEX finished_jobs_failed ON finished_jobs (id) WHERE status = 'FAILED';

CREATE TABLE templates (
  name          text COLLATE "C" NOT NULL PRIMARY KEY,
  owner_user_id text COLLATE "C" NOT NULL,
  version       bigint NOT NULL CHECK (version >= 1),
  created_at    bigint NOT NULL,
  updated_at    bigint NOT NULL,
  spec          text NOT NULL
);

CREATE INDEX templates_of_owner ON templates (owner_user_id, name);

-- By chain, because a chain's first job gives it its name and all its attempts have one origin.
CREATE TABLE job_origins (
  chain_id         text COLLATE "C" NOT NULL PRIMARY KEY,
  owner_user_id    text COLLATE "C" NOT NULL,
  template         text COLLATE "C",
  template_version bigint,
  params_schema    text,
  webhook_url      text
);

CREATE TABLE manual_retries (
  job_id   text COLLATE "C" NOT NULL PRIMARY KEY,
  chain    text COLLATE "C" NOT NULL,
  key      text COLLATE "C",
  attempt  bigint NOT NULL,
  asked_at bigint NOT NULL
);

CREATE UNIQUE INDEX manual_retries_one_per_key ON manual_retries (chain, key) WHERE key IS NOT NULL;
CREATE INDEX manual_retries_of_chain ON manual_retries (chain);

CREATE TABLE job_groups (
  id              text COLLATE "C" NOT NULL PRIMARY KEY,
  owner_user_id   text COLLATE "C" NOT NULL,
  name            text NOT NULL,
  mode            text NOT NULL CHECK (mode IN ('parallel', 'sequential')),
  stop_on_failure bigint NOT NULL CHECK (stop_on_failure IN (0, 1)),
  webhook_url     text,
  size            bigint NOT NULL CHECK (size >= 1),
  open            bigint NOT NULL CHECK (open BETWEEN 0 AND size),
  status          text NOT NULL CHECK (status IN ('RUNNING', 'COMPLETED', 'PARTIAL', 'CANCELLED')),
  cancel_reason   text,
  created_at      bigint NOT NULL,
  ended_at        bigint,
  CHECK ((ended_at IS NULL) = (status = 'RUNNING')),
  CONSTRAINT group_ends_with_its_members CHECK (status = 'RUNNING' OR open = 0)
);

CREATE INDEX job_groups_of_owner ON job_groups (owner_user_id, id);
CREATE INDEX job_groups_by_time ON job_groups (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE group_members (
  id        text COLLATE "C" NOT NULL PRIMARY KEY,
  group_id  text COLLATE "C" NOT NULL,
  place     bigint NOT NULL,
  name      text COLLATE "C",
  job_id    text COLLATE "C" NOT NULL,
  state     text NOT NULL CHECK (state IN ('pending', 'live', 'COMPLETED', 'FAILED', 'SKIPPED', 'CANCELLED')),
  reason    text,
  last_job  text COLLATE "C",
  ended_at  bigint,
  pool      text COLLATE "C" NOT NULL,
  resources text COLLATE "C",
  spec      text NOT NULL,
  CHECK ((ended_at IS NULL) = (state IN ('pending', 'live')))
);

CREATE UNIQUE INDEX group_members_in_order ON group_members (group_id, place);
CREATE INDEX group_members_by_chain ON group_members (job_id);
CREATE INDEX group_members_pending ON group_members (pool) WHERE state = 'pending';

-- What a worker was handed stays as it was handed over; of what has ended only its end may be corrected. A claim's token is
-- no part of that record, and is voided when others ended the run. No claim and no report writes these columns.
CREATE FUNCTION duly_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = '23514', CONSTRAINT = TG_ARGV[0];
END
$$;

CREATE TRIGGER jobs_params_fixed BEFORE UPDATE OF kind, payload ON jobs
FOR EACH ROW WHEN (OLD.state IN ('claimed', 'running')) EXECUTE FUNCTION duly_refuse('jobs_params_fixed');

CREATE TRIGGER finished_jobs_fixed BEFORE UPDATE OF
  id, kind, payload, key, lane, pool, resources, priority, run_at, created_at, attempt, max_attempts, retry_of, chain,
  session, started_at, ledger_run, backoff_ms, backoff_cap_ms, timeout_ms, retryable ON finished_jobs
FOR EACH ROW EXECUTE FUNCTION duly_refuse('finished_jobs_fixed');

CREATE TRIGGER finished_jobs_token_fixed BEFORE UPDATE OF token ON finished_jobs
FOR EACH ROW WHEN (NEW.token IS NOT NULL) EXECUTE FUNCTION duly_refuse('finished_jobs_fixed');
