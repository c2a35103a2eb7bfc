-- What runs say while they go on, and the files they left. Kept as long as the job.

CREATE TABLE job_logs (
  job_id text COLLATE "C" NOT NULL,
  seq    bigint  NOT NULL CHECK (seq >= 1),
  at     bigint  NOT NULL,
  level  text    NOT NULL CHECK (level IN ('debug', 'info', 'warning', 'error', 'stdout', 'stderr')),
  text   text    NOT NULL,
  PRIMARY KEY (job_id, seq)
);

CREATE TABLE job_progress (
  job_id   text COLLATE "C" NOT NULL PRIMARY KEY,
  at       bigint  NOT NULL,
  permille bigint  NOT NULL CHECK (permille BETWEEN 0 AND 1000),
  note     text    NOT NULL
);

CREATE TABLE job_artifacts (
  job_id text COLLATE "C" NOT NULL,
  name   text COLLATE "C" NOT NULL,
  size   bigint  NOT NULL CHECK (size >= 0),
  sha256 text    NOT NULL,
  PRIMARY KEY (job_id, name)
);
