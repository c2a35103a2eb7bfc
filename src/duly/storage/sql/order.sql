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

-- name: queue_page
-- What a pool will run after a place in its order, which a job need not have any more.
SELECT {job_columns} FROM jobs
WHERE pool = :pool AND state = 'ready' AND (rank, position, created_at, id) > (:rank, :position, :created_at, :id)
ORDER BY {in_order} LIMIT :most

-- name: queue_page_of_owner
SELECT {job_columns} FROM jobs
WHERE pool = :pool AND state = 'ready' AND (rank, position, created_at, id) > (:rank, :position, :created_at, :id)
  AND {is_of_owner}
ORDER BY {in_order} LIMIT :most

-- name: count_in_order
-- From after one place in a pool's order through another.
SELECT count(*) FROM jobs
WHERE pool = :pool AND state = 'ready' AND (rank, position, created_at, id) > (:rank, :position, :created_at, :id)
  AND (rank, position, created_at, id) <= (:last_rank, :last_position, :last_created_at, :last_id)
