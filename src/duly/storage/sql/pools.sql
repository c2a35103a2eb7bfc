-- Pools: limits, and what is used of them.

-- fragment: names_the_pool
-- Whether a job's extra resources name the pool. No LIKE: an underscore in a name would match any letter.
jobs.resources IS NOT NULL
  AND replace(',' || jobs.resources || ',', ',' || pools.name || ',', '') <> ',' || jobs.resources || ','

-- fragment: pool_columns
name, slots, mode, prefetch, ageing_ms, used, tickets, per_owner

-- name: pool_by_name
SELECT {pool_columns} FROM pools WHERE name = :name

-- name: lock_pool
SELECT {pool_columns} FROM pools WHERE name = :name {lock:no key update}

-- name: hold_pool
-- For a job that is about to name it: it can be neither removed nor reranked before we commit.
SELECT {pool_columns} FROM pools WHERE name = :name {lock:key share}

-- name: lock_pool_alone
-- Waits for whoever is putting jobs into it, and keeps others from it: what follows sees all of its jobs.
SELECT {pool_columns} FROM pools WHERE name = :name {lock}

-- name: lock_all_pools
SELECT name FROM pools ORDER BY name {lock:no key update}

-- name: all_pools
SELECT {pool_columns} FROM pools ORDER BY name

-- name: save_pool
INSERT INTO pools (name, slots, mode, prefetch, ageing_ms, per_owner)
VALUES (:name, :slots, :mode, :prefetch, :ageing_ms, :per_owner)
ON CONFLICT (name) DO UPDATE SET
  slots = excluded.slots, mode = excluded.mode, prefetch = excluded.prefetch, ageing_ms = excluded.ageing_ms,
  per_owner = excluded.per_owner

-- name: rerank_pool
-- Ageing was switched on or off: every place is computed anew, once.
UPDATE jobs SET rank =
  (SELECT CASE WHEN p.ageing_ms IS NULL THEN -jobs.priority ELSE jobs.position - jobs.priority * p.ageing_ms * 1000 END
   FROM pools p WHERE p.name = jobs.pool)
WHERE pool = :name

-- name: lanes_of_pool
-- Also those whose head alone is in the pool: others of the lane may wait elsewhere.
SELECT DISTINCT lane FROM jobs WHERE pool = :name AND lane IS NOT NULL AND state <> 'scheduled'

-- name: pool_is_empty
SELECT NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.pool = pools.name OR {names_the_pool})
   AND NOT EXISTS (SELECT 1 FROM tickets WHERE tickets.pool = pools.name)
   AND NOT EXISTS (SELECT 1 FROM group_members jobs
                   WHERE jobs.state = 'pending' AND (jobs.pool = pools.name OR {names_the_pool}))
FROM pools WHERE name = :name

-- name: remove_pool
DELETE FROM pools WHERE name = :name

-- name: resources_with_room
-- Resources that jobs are parked on although there is room.
SELECT name FROM pools WHERE parked > 0 AND mode <> 'paused' AND used + tickets < slots ORDER BY name

-- name: take_slot
-- One place of an extra resource; its row is locked and known to have room.
UPDATE pools SET used = used + 1 WHERE name = :name

-- name: park
-- Without the resource it needs, a claimed job gives its place back and waits for the resource.
UPDATE jobs SET state = 'parked', parked_on = :resource, session = NULL, token = NULL, started_at = NULL
WHERE id = :id

-- name: count_one_parked
-- Whoever frees a place of this resource will see it.
UPDATE pools SET parked = parked + 1 WHERE name = :name

-- name: recount_pools
-- What is used, counted from what is there: a rescue leaves no place lost.
UPDATE pools SET
  used = (SELECT count(*) FROM jobs WHERE jobs.session IS NOT NULL AND jobs.pool = pools.name)
       + (SELECT count(*) FROM jobs WHERE jobs.session IS NOT NULL AND jobs.state = 'running' AND {names_the_pool})
       + (SELECT count(*) FROM tickets WHERE tickets.pool = pools.name AND tickets.state = 'held'),
  tickets = (SELECT count(*) FROM tickets WHERE tickets.pool = pools.name AND tickets.state = 'waiting'),
  parked = (SELECT count(*) FROM jobs WHERE jobs.parked_on = pools.name AND jobs.state = 'parked')
