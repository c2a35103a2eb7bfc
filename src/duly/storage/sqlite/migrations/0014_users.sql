-- Users: who owns schedules, accounts and grants. Written with the first thing that somebody owns.

CREATE TABLE users (
  id         TEXT    NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO users (id, created_at)
SELECT id, min(created_at) FROM (
  SELECT owner_user_id AS id, created_at FROM schedules
  UNION ALL SELECT owner_user_id, created_at FROM billing_accounts
  UNION ALL SELECT user_id, created_at FROM execution_grants
  UNION ALL SELECT owner_user_id, created_at FROM api_tokens
) AS owners GROUP BY id;

-- A table that is there cannot be given a reference, so these stand for it. Users are never deleted, owners never change.
CREATE TRIGGER schedules_of_users BEFORE INSERT ON schedules
WHEN NOT EXISTS (SELECT 1 FROM users WHERE id = NEW.owner_user_id)
BEGIN SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed: schedules.owner_user_id'); END;

CREATE TRIGGER billing_accounts_of_users BEFORE INSERT ON billing_accounts
WHEN NOT EXISTS (SELECT 1 FROM users WHERE id = NEW.owner_user_id)
BEGIN SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed: billing_accounts.owner_user_id'); END;

CREATE TRIGGER execution_grants_of_users BEFORE INSERT ON execution_grants
WHEN NOT EXISTS (SELECT 1 FROM users WHERE id = NEW.user_id)
BEGIN SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed: execution_grants.user_id'); END;

CREATE INDEX execution_grants_of_account ON execution_grants (billing_account_id, id);

-- What others read: which graph a schedule runs, and which run an execution belongs to.
ALTER TABLE schedules ADD COLUMN graph_id TEXT
  GENERATED ALWAYS AS (CASE WHEN kind = 'graph.run' THEN json_extract(input, '$.graph_id') END) VIRTUAL;

CREATE INDEX schedule_runs_by_execution ON schedule_runs (run_id) WHERE run_id IS NOT NULL;

-- In words, as it was when the receipt was written: tables of prices change.
ALTER TABLE charge_receipts ADD COLUMN price TEXT;
