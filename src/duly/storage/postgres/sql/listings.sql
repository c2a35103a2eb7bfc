-- Lists that Postgres would answer otherwise by reading whole tables. OFFSET keeps a question a question of each row, and the
-- rows in the order of their index however few it expects to be left of them.

-- fragment: has_failed_for_good
NOT EXISTS (SELECT FROM finished_jobs n WHERE n.chain = f.chain AND n.retry_of IS NOT NULL AND n.retry_of = f.id OFFSET 0)
  AND NOT EXISTS (SELECT FROM jobs n WHERE n.chain = f.chain AND n.retry_of IS NOT NULL AND n.retry_of = f.id OFFSET 0)

-- name: failed_jobs
SELECT {finished_columns} FROM (
  SELECT * FROM finished_jobs
  WHERE (status, id) < ('FAILED', :before) AND status >= 'FAILED' AND status <> 'COMPLETED'
  ORDER BY status DESC, id DESC OFFSET 0) AS f
WHERE {has_failed_for_good} AND {asked_of_failed} ORDER BY status DESC, id DESC LIMIT :most

-- name: failed_jobs_of_pool
SELECT {finished_columns} FROM (
  SELECT * FROM finished_jobs
  WHERE (pool, status, id) < (:pool, 'FAILED', :before) AND (pool, status) >= (:pool, 'FAILED')
    AND status <> 'COMPLETED'
  ORDER BY pool DESC, status DESC, id DESC OFFSET 0) AS f
WHERE {has_failed_for_good} AND {asked_of_failed} ORDER BY pool DESC, status DESC, id DESC LIMIT :most

-- name: failed_jobs_of_owner
SELECT {finished_columns} FROM (
  SELECT * FROM finished_jobs
  WHERE (owner_user_id, status, id) < (:owner, 'FAILED', :before) AND (owner_user_id, status) >= (:owner, 'FAILED')
    AND owner_user_id IS NOT NULL
  ORDER BY owner_user_id DESC, status DESC, id DESC OFFSET 0) AS f
WHERE {has_failed_for_good} AND {asked_of_failed} ORDER BY owner_user_id DESC, status DESC, id DESC LIMIT :most
