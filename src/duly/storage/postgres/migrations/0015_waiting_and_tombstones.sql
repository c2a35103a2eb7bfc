-- Executions that were cancelled before their calls came, to be pruned by age.

CREATE INDEX execution_requests_tombstones ON execution_requests (completed_at) WHERE request_hash = '';
