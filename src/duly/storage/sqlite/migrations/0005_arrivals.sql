-- Jobs that were put alone: a put writes the one page at the end of this table, where `jobs` and its indexes would take
-- three or four. Every transaction moves them into `jobs` first; whoever only reads sees both as one. Nothing that stands
-- here may break a rule of `jobs`.

CREATE TABLE arrivals (
  position       INTEGER NOT NULL PRIMARY KEY,
  id             TEXT    NOT NULL,
  kind           TEXT    NOT NULL,
  payload        TEXT    NOT NULL,
  pool           TEXT    NOT NULL,
  priority       INTEGER NOT NULL,
  rank           INTEGER NOT NULL,
  run_at         INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  state          TEXT    NOT NULL CHECK (state = 'scheduled' OR state = 'ready'),
  max_attempts   INTEGER NOT NULL CHECK (max_attempts >= 1),
  backoff_ms     INTEGER NOT NULL,
  backoff_cap_ms INTEGER NOT NULL,
  timeout_ms     INTEGER
) STRICT;
