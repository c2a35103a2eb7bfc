-- Webhooks: who wants to be told, what there is to tell, and what became of telling it.

CREATE TABLE webhook_endpoints (
  id               text COLLATE "C" NOT NULL PRIMARY KEY,
  owner_user_id    text COLLATE "C" NOT NULL,
  url              text COLLATE "C" NOT NULL,
  host             text COLLATE "C" NOT NULL,
  events           text NOT NULL,
  everything       bigint NOT NULL CHECK (everything IN (0, 1)),
  note             text NOT NULL,
  signing_key      text NOT NULL,
  old_signing_key  text,
  old_key_until    bigint,
  disabled_at      bigint,
  disabled_reason  text,
  created_at       bigint NOT NULL,
  updated_at       bigint NOT NULL,
  CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
);

CREATE UNIQUE INDEX webhook_endpoints_one_per_url ON webhook_endpoints (owner_user_id, url);

-- What has ended since a courier last looked, each as it was then.
CREATE TABLE webhook_outbox (
  seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  noun          text NOT NULL CHECK (noun IN ('job', 'group', 'run')),
  owner_user_id text COLLATE "C",
  url           text COLLATE "C",
  occurred_at   bigint NOT NULL,
  subject       text NOT NULL
);

CREATE TABLE webhook_events (
  id            text COLLATE "C" NOT NULL PRIMARY KEY,
  type          text NOT NULL,
  owner_user_id text COLLATE "C",
  subject_id    text COLLATE "C" NOT NULL,
  occurred_at   bigint NOT NULL,
  body          text NOT NULL
);

-- Pending ones are due at `due_at`; while a courier holds one, that is when its claim ends.
CREATE TABLE webhook_deliveries (
  id          text COLLATE "C" NOT NULL PRIMARY KEY,
  event_id    text COLLATE "C" NOT NULL,
  endpoint_id text COLLATE "C" NOT NULL,
  type        text NOT NULL,
  subject_id  text COLLATE "C" NOT NULL,
  state       text NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  tries       bigint NOT NULL,
  attempts    bigint NOT NULL,
  due_at      bigint NOT NULL,
  give_up_at  bigint NOT NULL,
  claim       text,
  status      bigint,
  error       text,
  created_at  bigint NOT NULL,
  ended_at    bigint,
  CHECK ((ended_at IS NULL) = (state = 'pending')),
  CHECK (claim IS NULL OR state = 'pending')
);

CREATE UNIQUE INDEX webhook_deliveries_once ON webhook_deliveries (event_id, endpoint_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_of_subject ON webhook_deliveries (subject_id);
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE webhook_attempts (
  delivery_id text COLLATE "C" NOT NULL,
  number      bigint NOT NULL,
  at          bigint NOT NULL,
  ms          bigint NOT NULL,
  status      bigint,
  error       text,
  excerpt     text NOT NULL,
  PRIMARY KEY (delivery_id, number)
);

-- Hosts that have failed of late, as each owner's calls have met them.
CREATE TABLE webhook_hosts (
  owner_user_id text COLLATE "C" NOT NULL,
  host          text COLLATE "C" NOT NULL,
  failures      bigint NOT NULL,
  rests         bigint NOT NULL,
  open_until    bigint,
  probe         text,
  PRIMARY KEY (owner_user_id, host)
);

-- Whoever ends a thing writes it down to be told, in the same statement. While nobody asked to be told, that is one look at an
-- empty table.
CREATE FUNCTION duly_tell_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM webhook_endpoints) THEN
    INSERT INTO webhook_outbox (noun, owner_user_id, url, occurred_at, subject)
    SELECT 'job', COALESCE(o.owner_user_id, r.owner_user_id), o.webhook_url, f.finished_at, json_build_array(
    f.id, f.kind, f.payload, f.key, f.lane, f.pool, f.resources, f.priority, f.run_at, f.created_at, f.attempt, f.max_attempts, f.retry_of, f.chain,
    f.session, f.token, f.started_at, f.finished_at, f.status, f.error, f.exit_code, f.result, f.ledger_run, f.backoff_ms,
    f.backoff_cap_ms, f.timeout_ms, f.retryable)::text
    FROM ended f
    LEFT JOIN job_origins o ON o.chain_id = f.chain
    LEFT JOIN schedule_runs r ON r.id = f.ledger_run;
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER finished_jobs_told AFTER INSERT ON finished_jobs REFERENCING NEW TABLE AS ended
FOR EACH STATEMENT EXECUTE FUNCTION duly_tell_jobs();

CREATE FUNCTION duly_tell_group() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM webhook_endpoints) THEN
    INSERT INTO webhook_outbox (noun, owner_user_id, url, occurred_at, subject)
    VALUES ('group', NEW.owner_user_id, NEW.webhook_url, NEW.ended_at, json_build_array(
    NEW.id, NEW.owner_user_id, NEW.name, NEW.mode, NEW.stop_on_failure, NEW.webhook_url, NEW.size, NEW.open, NEW.status, NEW.cancel_reason, NEW.created_at,
    NEW.ended_at)::text);
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER job_groups_told AFTER UPDATE OF status ON job_groups
FOR EACH ROW WHEN (OLD.status = 'RUNNING' AND NEW.status <> 'RUNNING') EXECUTE FUNCTION duly_tell_group();

CREATE FUNCTION duly_tell_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM webhook_endpoints) THEN
    INSERT INTO webhook_outbox (noun, owner_user_id, url, occurred_at, subject)
    VALUES ('run', NEW.owner_user_id, NULL, NEW.completed_at, json_build_array(
    NEW.id, NEW.schedule_id, NEW.owner_user_id, NEW.revision, NEW.kind, NEW.own_key, NEW.scheduled_for, NEW.fire_at, NEW.opened_at, NEW.status, NEW.reason,
    NEW.detail, NEW.job_id, NEW.run_id, NEW.trace_id, NEW.attempt_count, NEW.started_at, NEW.completed_at, NEW.error_message)::text);
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER schedule_runs_told AFTER UPDATE OF completed_at ON schedule_runs
FOR EACH ROW WHEN (OLD.completed_at IS NULL AND NEW.completed_at IS NOT NULL) EXECUTE FUNCTION duly_tell_run();

CREATE TRIGGER schedule_runs_told_at_once AFTER INSERT ON schedule_runs
FOR EACH ROW WHEN (NEW.completed_at IS NOT NULL) EXECUTE FUNCTION duly_tell_run();
