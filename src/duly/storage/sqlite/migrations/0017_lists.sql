-- Lists, a page at a time from an index, whatever has ended. An index of ended jobs costs every job its end, so what most
-- jobs are, put by nobody and ended well, is in none of these.

ALTER TABLE finished_jobs ADD COLUMN owner_user_id TEXT;

UPDATE finished_jobs SET owner_user_id = COALESCE(
  (SELECT owner_user_id FROM schedule_runs r WHERE r.id = finished_jobs.ledger_run),
  (SELECT owner_user_id FROM job_origins o WHERE o.chain_id = finished_jobs.chain));

DROP INDEX finished_jobs_failed;
CREATE INDEX finished_jobs_aside ON finished_jobs (status, id) WHERE status <> 'COMPLETED';
CREATE INDEX finished_jobs_of_owner ON finished_jobs (owner_user_id, status, id) WHERE owner_user_id IS NOT NULL;
CREATE INDEX finished_jobs_aside_of_pool ON finished_jobs (pool, status, id) WHERE status <> 'COMPLETED';

-- As on Postgres, where an index of the status itself would cost every run its start.
ALTER TABLE schedule_runs ADD COLUMN ended_as TEXT
  GENERATED ALWAYS AS (CASE WHEN status = 'error' OR status = 'skipped' OR status = 'cancelled' THEN status END) VIRTUAL;

CREATE INDEX schedule_runs_aside ON schedule_runs (ended_as, id) WHERE ended_as IS NOT NULL;
CREATE INDEX schedule_runs_aside_of_owner ON schedule_runs (owner_user_id, ended_as, id) WHERE ended_as IS NOT NULL;
CREATE INDEX schedule_runs_aside_of_schedule ON schedule_runs (schedule_id, ended_as, scheduled_for, own_key)
  WHERE ended_as IS NOT NULL;
CREATE INDEX schedule_runs_asked_for ON schedule_runs (kind, id) WHERE kind <> 'slot';

CREATE INDEX job_groups_by_status ON job_groups (status, id);
CREATE INDEX job_groups_of_owner_by_status ON job_groups (owner_user_id, status, id);

CREATE INDEX reviews_by_state ON reviews (state, id);
CREATE INDEX reviews_of_owner_by_state ON reviews (owner_user_id, state, id);

ALTER TABLE webhook_deliveries ADD COLUMN owner_user_id TEXT;

UPDATE webhook_deliveries SET owner_user_id =
  (SELECT owner_user_id FROM webhook_endpoints e WHERE e.id = webhook_deliveries.endpoint_id);

CREATE INDEX webhook_deliveries_of_owner ON webhook_deliveries (owner_user_id, id);
CREATE INDEX webhook_deliveries_aside ON webhook_deliveries (state, id) WHERE state <> 'delivered';
CREATE INDEX webhook_deliveries_aside_of_owner ON webhook_deliveries (owner_user_id, state, id) WHERE state <> 'delivered';
CREATE INDEX webhook_deliveries_aside_of_endpoint ON webhook_deliveries (endpoint_id, state, id) WHERE state <> 'delivered';
