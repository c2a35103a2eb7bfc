-- Executions that were cancelled before their calls came, to be pruned by age; and those that wait for a call-back, until
-- when, and which job goes on with them then.

CREATE INDEX execution_requests_tombstones ON execution_requests (completed_at) WHERE request_hash = '';

ALTER TABLE execution_requests ADD COLUMN called_back_by INTEGER;
ALTER TABLE execution_requests ADD COLUMN waiting_job TEXT;
CREATE INDEX execution_requests_of_waiting_job ON execution_requests (waiting_job)
  WHERE waiting_job IS NOT NULL;

-- Which grant the launches of a version act under; the version itself never changes.
ALTER TABLE workflow_versions ADD COLUMN launch_grant_id TEXT REFERENCES execution_grants (id);
