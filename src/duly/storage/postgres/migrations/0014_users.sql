-- Users: who owns schedules, accounts and grants. Written with the first thing that somebody owns.

CREATE TABLE users (
  id         text COLLATE "C" NOT NULL PRIMARY KEY,
  created_at bigint NOT NULL
);

INSERT INTO users (id, created_at)
SELECT id, min(created_at) FROM (
  SELECT owner_user_id AS id, created_at FROM schedules
  UNION ALL SELECT owner_user_id, created_at FROM billing_accounts
  UNION ALL SELECT user_id, created_at FROM execution_grants
  UNION ALL SELECT owner_user_id, created_at FROM api_tokens
) AS owners GROUP BY id;

ALTER TABLE schedules ADD CONSTRAINT schedules_of_users FOREIGN KEY (owner_user_id) REFERENCES users (id);
ALTER TABLE billing_accounts ADD CONSTRAINT billing_accounts_of_users FOREIGN KEY (owner_user_id) REFERENCES users (id);
ALTER TABLE execution_grants ADD CONSTRAINT execution_grants_of_users FOREIGN KEY (user_id) REFERENCES users (id);

CREATE INDEX execution_grants_of_account ON execution_grants (billing_account_id, id);

-- What others read: which graph a schedule runs, and which run an execution belongs to.
ALTER TABLE schedules ADD COLUMN graph_id text
  GENERATED ALWAYS AS (CASE WHEN kind = 'graph.run' THEN input::json ->> 'graph_id' END) STORED;

CREATE INDEX schedule_runs_by_execution ON schedule_runs (run_id) WHERE run_id IS NOT NULL;

-- In words, as it was when the receipt was written: tables of prices change.
ALTER TABLE charge_receipts ADD COLUMN price text;
