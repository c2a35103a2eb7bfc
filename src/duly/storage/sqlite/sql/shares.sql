-- Shares, as SQLite looks at them: a step for each share, however many jobs it has.

-- fragment: its_share
-- Its owner's; without one, its lane's up to the first slash; else that of all that have neither.
CASE WHEN EXISTS (SELECT 1 FROM pools WHERE pools.name = jobs.pool AND pools.per_owner IS NOT NULL) THEN COALESCE(
  (SELECT o.owner_user_id FROM job_origins o WHERE o.chain_id = jobs.chain),
  (SELECT r.owner_user_id FROM schedule_runs r WHERE r.id = jobs.ledger_run), substr(jobs.lane, 1, instr(jobs.lane || '/', '/') - 1), '') END

-- name: pools_with_shares
SELECT name FROM pools WHERE per_owner IS NOT NULL

-- name: room_of_shares
SELECT min(:wanted, slots - used - tickets), per_owner FROM pools WHERE name = :pool AND mode <> 'paused'

-- name: shares_ready
WITH RECURSIVE shares(share) AS (
  SELECT (SELECT min(share) FROM jobs WHERE pool = :pool AND share IS NOT NULL AND state = 'ready')
  UNION ALL
  SELECT (SELECT min(share) FROM jobs WHERE pool = :pool AND share > shares.share AND share IS NOT NULL AND state = 'ready')
  FROM shares WHERE shares.share IS NOT NULL
)
SELECT share FROM shares WHERE share IS NOT NULL

-- name: claim_these
-- columns: id
UPDATE jobs SET
  state = CASE WHEN resources IS NULL THEN :state ELSE 'claimed' END,
  started_at = CASE WHEN resources IS NULL AND :state = 'running' THEN :now END,
  session = :session, token = :token
WHERE id = :id
RETURNING {claimed_columns}
