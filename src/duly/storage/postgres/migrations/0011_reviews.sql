-- Reviews: what is asked of people, and what they decided. Deliveries: inbound webhooks that were acted on.

CREATE TABLE reviews (
  id            text COLLATE "C" NOT NULL PRIMARY KEY,
  run_id        text COLLATE "C" NOT NULL REFERENCES execution_requests (run_id),
  attempt       bigint NOT NULL CHECK (attempt >= 1),
  owner_user_id text COLLATE "C" NOT NULL,
  graph_id      text NOT NULL,
  kind          text NOT NULL CHECK (kind = 'graph' OR kind = 'crash' OR kind = 'budget'),
  question_id   text COLLATE "C" NOT NULL,
  question      text NOT NULL,
  created_at    bigint NOT NULL,
  deadline      bigint NOT NULL,
  on_silence    text NOT NULL CHECK (
    on_silence = 'approve' OR on_silence = 'reject' OR on_silence = 'edit' OR on_silence = 'fail'),
  silent_value  text,
  state         text NOT NULL CHECK (
    state = 'open' OR state = 'approved' OR state = 'rejected' OR state = 'edited' OR state = 'expired' OR
    state = 'withdrawn'),
  value         text,
  note          text NOT NULL,
  decided_by    text,
  decided_at    bigint,
  decision_key  text,
  job_id        text COLLATE "C",
  CONSTRAINT reviews_decided CHECK ((state = 'open') = (decided_at IS NULL) AND (decided_at IS NULL) = (decided_by IS NULL))
);

CREATE UNIQUE INDEX reviews_of_question ON reviews (run_id, attempt, kind, question_id);
CREATE INDEX reviews_overdue ON reviews (deadline) WHERE state = 'open';
CREATE INDEX reviews_of_job ON reviews (job_id) WHERE state = 'open' AND job_id IS NOT NULL;
CREATE INDEX reviews_of_owner ON reviews (owner_user_id, id);

CREATE TABLE inbound_deliveries (
  source      text COLLATE "C" NOT NULL,
  delivery_id text COLLATE "C" NOT NULL,
  received_at bigint NOT NULL,
  PRIMARY KEY (source, delivery_id)
);

CREATE INDEX inbound_deliveries_by_time ON inbound_deliveries (received_at);
