-- Shares: how many jobs of one owner a pool runs at once. In pools without such a limit no job names its share, and these
-- indexes are empty.

ALTER TABLE pools ADD COLUMN per_owner bigint CHECK (per_owner > 0);
ALTER TABLE jobs ADD COLUMN share text COLLATE "C";

CREATE INDEX jobs_ready_of_share ON jobs (pool, share, rank, position, created_at, id)
  WHERE share IS NOT NULL AND state = 'ready';
CREATE INDEX jobs_claimed_of_share ON jobs (pool, share) WHERE share IS NOT NULL AND session IS NOT NULL;
