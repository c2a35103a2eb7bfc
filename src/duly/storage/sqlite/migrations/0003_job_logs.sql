-- What runs say while they go on, and the files they left. Kept as long as the job.

CREATE TABLE job_logs (
  job_id TEXT    NOT NULL,
  seq    INTEGER NOT NULL CHECK (seq >= 1),
  at     INTEGER NOT NULL,
  level  TEXT    NOT NULL CHECK (level IN ('debug', 'info', 'warning', 'error', 'stdout', 'stderr')),
  text   TEXT    NOT NULL,
  PRIMARY KEY (job_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_progress (
  job_id   TEXT    NOT NULL PRIMARY KEY,
  at       INTEGER NOT NULL,
  permille INTEGER NOT NULL CHECK (permille BETWEEN 0 AND 1000),
  note     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE job_artifacts (
  job_id TEXT    NOT NULL,
  name   TEXT    NOT NULL,
  size   INTEGER NOT NULL CHECK (size >= 0),
  sha256 TEXT    NOT NULL,
  PRIMARY KEY (job_id, name)
) STRICT, WITHOUT ROWID;
