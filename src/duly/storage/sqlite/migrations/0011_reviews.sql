-- Reviews: what is asked of people, and what they decided. Deliveries: inbound webhooks that were acted on.

CREATE TABLE reviews (
  id            TEXT    NOT NULL PRIMARY KEY,
  run_id        TEXT    NOT NULL REFERENCES execution_requests (run_id),
  attempt       INTEGER NOT NULL CHECK (attempt >= 1),
  owner_user_id TEXT    NOT NULL,
  graph_id      TEXT    NOT NULL,
  kind          TEXT    NOT NULL CHECK (kind = 'graph' OR kind = 'crash' OR kind = 'budget'),
  question_id   TEXT    NOT NULL,
  question      TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  deadline      INTEGER NOT NULL,
  on_silence    TEXT    NOT NULL CHECK (
    on_silence = 'approve' OR on_silence = 'reject' OR on_silence = 'edit' OR on_silence = 'fail'),
  silent_value  TEXT,
  state         TEXT    NOT NULL CHECK (
    state = 'open' OR state = 'approved' OR state = 'rejected' OR state = 'edited' OR state = 'expired' OR
    state = 'withdrawn'),
  value         TEXT,
  note          TEXT    NOT NULL,
  decided_by    TEXT,
  decided_at    INTEGER,
  decision_key  TEXT,
  job_id        TEXT,
  CONSTRAINT reviews_decided CHECK ((state = 'open') = (decided_at IS NULL) AND (decided_at IS NULL) = (decided_by IS NULL))
) STRICT;

CREATE UNIQUE INDEX reviews_of_question ON reviews (run_id, attempt, kind, question_id);
CREATE INDEX reviews_overdue ON reviews (deadline) WHERE state = 'open';
CREATE INDEX reviews_of_job ON reviews (job_id) WHERE state = 'open' AND job_id IS NOT NULL;
CREATE INDEX reviews_of_owner ON reviews (owner_user_id, id);

CREATE TABLE inbound_deliveries (
  source      TEXT    NOT NULL,
  delivery_id TEXT    NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (source, delivery_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX inbound_deliveries_by_time ON inbound_deliveries (received_at);
