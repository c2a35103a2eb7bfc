-- Shares, as Postgres looks at them: a step for each share, however many jobs it has.

-- fragment: its_share
-- Its owner's; without one, its lane's up to the first slash; else that of all that have neither.
CASE WHEN EXISTS (SELECT 1 FROM pools WHERE pools.name = jobs.pool AND pools.per_owner IS NOT NULL) THEN COALESCE(
  (SELECT o.owner_user_id FROM job_origins o WHERE o.chain_id = jobs.chain),
  (SELECT r.owner_user_id FROM schedule_runs r WHERE r.id = jobs.ledger_run), split_part(jobs.lane, '/', 1), '') END

-- name: claim_by_share
-- columns: pool wanted
-- As `claim`, for pools with a limit per owner: of each share the best jobs, as many as it has left, and of those the best
-- in the pool's order. The pools' rows were locked by a statement before this one, so that all claims in them are seen.
WITH RECURSIVE alive AS MATERIALIZED (
  SELECT id FROM sessions WHERE id = :session FOR NO KEY UPDATE
), room AS MATERIALIZED (
  SELECT p.name, p.per_owner, GREATEST(LEAST(w.wanted, p.slots - p.used - p.tickets), 0) AS free
  FROM unnest(:pool::text[], :wanted::bigint[]) AS w(pool, wanted) JOIN pools p ON p.name = w.pool
  WHERE p.mode <> 'paused' AND p.per_owner IS NOT NULL AND EXISTS (SELECT FROM alive)
), shares(pool, share) AS (
  SELECT room.name, (
    SELECT min(j.share) FROM jobs j WHERE j.pool = room.name AND j.share IS NOT NULL AND j.state = 'ready')
  FROM room WHERE room.free > 0
  UNION ALL
  SELECT s.pool, (
    SELECT min(j.share) FROM jobs j
    WHERE j.pool = s.pool AND j.share > s.share AND j.share IS NOT NULL AND j.state = 'ready')
  FROM shares s WHERE s.share IS NOT NULL
), best AS MATERIALIZED (
  SELECT s.pool, j.* FROM shares s JOIN room ON room.name = s.pool CROSS JOIN LATERAL (
    SELECT ctid AS place, rank, position, created_at, id FROM jobs
    WHERE pool = s.pool AND share = s.share AND share IS NOT NULL AND state = 'ready' ORDER BY {in_order}
    LIMIT GREATEST(LEAST(room.free, room.per_owner - (
      SELECT count(*) FROM jobs u
      WHERE u.pool = s.pool AND u.share = s.share AND u.share IS NOT NULL AND u.session IS NOT NULL)), 0)) AS j
  WHERE s.share IS NOT NULL
), claimed AS (
  UPDATE jobs SET
    state = CASE WHEN resources IS NULL THEN :state ELSE 'claimed' END,
    started_at = CASE WHEN resources IS NULL AND :state = 'running' THEN :now::bigint END,
    session = :session, token = :token
  WHERE ctid = ANY(ARRAY(
    SELECT held.ctid FROM room CROSS JOIN LATERAL (
      SELECT place FROM best WHERE best.pool = room.name ORDER BY {in_order} LIMIT room.free) AS picked
    CROSS JOIN LATERAL (
      SELECT ctid FROM jobs WHERE ctid = picked.place AND state = 'ready' FOR NO KEY UPDATE SKIP LOCKED) AS held))
  RETURNING {claimed_columns}
), counted AS (
  UPDATE pools SET used = used + taken.count
  FROM (SELECT pool, count(*) AS count FROM claimed GROUP BY pool) AS taken WHERE pools.name = taken.pool
), rested AS (
  UPDATE sessions SET busy = busy + (SELECT count(*) FROM claimed WHERE state = 'running')
  WHERE id IN (SELECT id FROM alive)
), begun AS (
  UPDATE schedule_runs SET status = 'running', started_at = COALESCE(started_at, :now), attempt_count = attempt_count + 1
  WHERE id = ANY(ARRAY(SELECT ledger_run FROM claimed WHERE state = 'running' AND ledger_run IS NOT NULL))
    AND status IN ('pending', 'running')
)
SELECT * FROM claimed
