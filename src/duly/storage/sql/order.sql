-- Order within a pool: rank, then position, then age. Only jobs that nobody has claimed can be moved.

-- name: first_in_pool
SELECT {job_columns} FROM jobs
WHERE pool = :pool AND state NOT IN ('claimed', 'running') AND id <> :apart_from
ORDER BY {in_order} LIMIT 1

-- name: neighbours_before
-- The jobs right before a place, nearest first; claimed ones too, since they may come back.
SELECT id, position FROM jobs
WHERE pool = :pool AND rank = :rank AND (position, created_at, id) < (:position, :created_at, :id) AND id <> :apart_from
ORDER BY position DESC, created_at DESC, id DESC LIMIT :most

-- name: neighbour_after
SELECT {job_columns} FROM jobs
WHERE pool = :pool AND rank = :rank AND (position, created_at, id) > (:position, :created_at, :id) AND id <> :apart_from
ORDER BY {in_order} LIMIT 1

-- name: neighbour_beside
SELECT id FROM jobs WHERE pool = :pool AND rank = :rank AND position = :position AND id <> :apart_from LIMIT 1

-- name: place
UPDATE jobs SET priority = :priority, rank = :rank, position = :position
WHERE id = :id AND state NOT IN ('claimed', 'running') RETURNING id

-- name: reprioritise
UPDATE jobs SET priority = :priority,
  rank = (SELECT CASE WHEN ageing_ms IS NULL THEN -CAST(:priority AS bigint)
               ELSE jobs.position - CAST(:priority AS bigint) * ageing_ms * 1000 END
          FROM pools WHERE name = jobs.pool)
WHERE id = :id AND state NOT IN ('claimed', 'running') RETURNING id
