-- What runs said: lines, progress, artifacts.

-- name: log_lines_after
SELECT job_id, seq, at, level, text FROM job_logs WHERE job_id = :job_id AND seq > :seq ORDER BY seq LIMIT :most

-- name: progress_of
SELECT job_id, at, permille, note FROM job_progress WHERE job_id = :job_id

-- name: artifacts_of
SELECT job_id, name, size, sha256 FROM job_artifacts WHERE job_id = :job_id ORDER BY name
