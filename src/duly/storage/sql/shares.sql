-- Shares: whose part of a pool a job uses, named only where the pool has a limit per owner.

-- name: name_share
-- It asks for something else now, or somebody owns it.
UPDATE jobs SET share = {its_share} WHERE id = :id

-- name: name_shares_of_pool
-- The limit was set, or taken away: every share is named anew, once.
UPDATE jobs SET share = {its_share} WHERE pool = :name

-- name: shares_used
SELECT share, count(*) FROM jobs WHERE pool = :pool AND share IS NOT NULL AND session IS NOT NULL GROUP BY share

-- name: ready_of_share
SELECT rank, position, created_at, id FROM jobs
WHERE pool = :pool AND share = :share AND share IS NOT NULL AND state = 'ready' ORDER BY {in_order} LIMIT :most
