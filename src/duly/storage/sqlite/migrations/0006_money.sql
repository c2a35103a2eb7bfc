-- Money: who pays, what came in, what is reserved before a run, what each unit of it has cost, and who may run at whose cost.
-- Amounts are whole millionths of the account's currency.

CREATE TABLE billing_accounts (
  id            TEXT    NOT NULL PRIMARY KEY,
  owner_user_id TEXT    NOT NULL,
  name          TEXT    NOT NULL,
  currency      TEXT    NOT NULL,
  granted       INTEGER NOT NULL,
  available     INTEGER NOT NULL,
  held          INTEGER NOT NULL,
  charged       INTEGER NOT NULL,
  overrun       INTEGER NOT NULL,
  created_at    INTEGER NOT NULL,
  CONSTRAINT billing_accounts_add_up CHECK (granted = available + held + charged),
  CONSTRAINT billing_accounts_not_overdrawn CHECK (available >= 0 AND held >= 0 AND overrun >= 0),
  CONSTRAINT billing_accounts_pay_their_overrun CHECK (available = 0 OR overrun = 0)
) STRICT;

CREATE INDEX billing_accounts_of_owner ON billing_accounts (owner_user_id, id);

CREATE TABLE virtual_keys (
  id                 TEXT    NOT NULL PRIMARY KEY,
  billing_account_id TEXT    NOT NULL REFERENCES billing_accounts (id),
  is_default         INTEGER NOT NULL CHECK (is_default = 0 OR is_default = 1),
  created_at         INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX virtual_keys_one_default ON virtual_keys (billing_account_id) WHERE is_default = 1;

-- Append-only.
CREATE TABLE credits (
  id                 TEXT    NOT NULL PRIMARY KEY,
  billing_account_id TEXT    NOT NULL REFERENCES billing_accounts (id),
  key                TEXT    NOT NULL,
  amount             INTEGER NOT NULL CHECK (amount > 0),
  created_at         INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX credits_one_per_key ON credits (billing_account_id, key);
CREATE INDEX credits_by_time ON credits (billing_account_id, created_at, id);

-- One for each attempt of a run; `expires_at` is read by the clock of its era.
CREATE TABLE holds (
  run_id             TEXT    NOT NULL,
  attempt            INTEGER NOT NULL CHECK (attempt >= 1),
  billing_account_id TEXT    NOT NULL REFERENCES billing_accounts (id),
  virtual_key_id     TEXT    NOT NULL REFERENCES virtual_keys (id),
  schedule_id        TEXT,
  amount             INTEGER NOT NULL CHECK (amount >= 0),
  state              TEXT    NOT NULL CHECK (
    state = 'held' OR state = 'settled' OR state = 'released' OR state = 'lapsed'),
  spent              INTEGER NOT NULL CHECK (spent >= 0),
  unmetered          INTEGER NOT NULL CHECK (unmetered >= 0),
  era                TEXT    NOT NULL,
  expires_at         INTEGER NOT NULL,
  held_at            INTEGER NOT NULL,
  counted_at         INTEGER NOT NULL,
  ended_at           INTEGER,
  PRIMARY KEY (run_id, attempt),
  CHECK ((ended_at IS NULL) = (state = 'held'))
) STRICT;

-- Without `expires_at`, so that renewing touches no index; those that are open are few.
CREATE INDEX holds_open ON holds (billing_account_id, counted_at) WHERE state = 'held';
CREATE INDEX holds_of_account ON holds (billing_account_id, counted_at);
CREATE INDEX holds_of_schedule ON holds (schedule_id, counted_at) WHERE schedule_id IS NOT NULL;

-- Append-only. No amount: something was used, and nobody knows what it costs.
CREATE TABLE charge_receipts (
  id                 TEXT    NOT NULL PRIMARY KEY,
  billing_account_id TEXT    NOT NULL REFERENCES billing_accounts (id),
  virtual_key_id     TEXT    NOT NULL REFERENCES virtual_keys (id),
  run_id             TEXT    NOT NULL,
  attempt            INTEGER NOT NULL,
  unit               TEXT    NOT NULL,
  source_reference   TEXT    NOT NULL,
  model              TEXT,
  input_tokens       INTEGER,
  output_tokens      INTEGER,
  cache_read_tokens  INTEGER,
  cache_write_tokens INTEGER,
  amount             INTEGER CHECK (amount >= 0),
  created_at         INTEGER NOT NULL,
  FOREIGN KEY (run_id, attempt) REFERENCES holds (run_id, attempt)
) STRICT;

CREATE UNIQUE INDEX charge_receipts_once ON charge_receipts (source_reference);
CREATE INDEX charge_receipts_of_hold ON charge_receipts (run_id, attempt);
CREATE INDEX charge_receipts_by_time ON charge_receipts (billing_account_id, created_at, id);
CREATE INDEX charge_receipts_unmetered ON charge_receipts (billing_account_id) WHERE amount IS NULL;

-- `used` counts the holds of its scope since `window_start`.
CREATE TABLE budgets (
  id            TEXT    NOT NULL PRIMARY KEY,
  owner_user_id TEXT    NOT NULL,
  scope         TEXT    NOT NULL CHECK (scope = 'account' OR scope = 'schedule'),
  scope_id      TEXT    NOT NULL,
  period        TEXT    NOT NULL CHECK (period = 'day' OR period = 'week' OR period = 'month' OR period = 'total'),
  timezone      TEXT    NOT NULL,
  limit_amount  INTEGER NOT NULL CHECK (limit_amount >= 0),
  on_exceeded   TEXT    NOT NULL CHECK (on_exceeded = 'skip' OR on_exceeded = 'pause' OR on_exceeded = 'ask'),
  window_start  INTEGER NOT NULL,
  used          INTEGER NOT NULL CHECK (used >= 0),
  created_at    INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX budgets_one_per_period ON budgets (scope, scope_id, period);
CREATE INDEX budgets_of_owner ON budgets (owner_user_id, id);

CREATE TABLE execution_grants (
  id                 TEXT    NOT NULL PRIMARY KEY,
  user_id            TEXT    NOT NULL,
  billing_account_id TEXT    NOT NULL REFERENCES billing_accounts (id),
  scopes             TEXT    NOT NULL,
  expires_at         INTEGER,
  revoked_at         INTEGER,
  created_at         INTEGER NOT NULL,
  last_used_at       INTEGER
) STRICT;

CREATE INDEX execution_grants_of_user ON execution_grants (user_id, id);

ALTER TABLE schedules ADD COLUMN execution_grant_id TEXT REFERENCES execution_grants (id);

CREATE INDEX schedules_of_grant ON schedules (execution_grant_id, id) WHERE execution_grant_id IS NOT NULL;
