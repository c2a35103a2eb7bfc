-- Shares: how many jobs of one owner a pool runs at once. In pools without such a limit no job names its share, and these
-- indexes are empty.

ALTER TABLE pools ADD COLUMN per_owner INTEGER CHECK (per_owner > 0);
ALTER TABLE jobs ADD COLUMN share TEXT;

CREATE INDEX jobs_ready_of_share ON jobs (pool, share, rank, position, created_at, id)
  WHERE share IS NOT NULL AND state = 'ready';
CREATE INDEX jobs_claimed_of_share ON jobs (pool, share) WHERE share IS NOT NULL AND session IS NOT NULL;

-- A job's owner is known after the job is put. Postgres does this in the statement that saves the owner.
CREATE TRIGGER job_origins_own_shares AFTER INSERT ON job_origins
BEGIN
  UPDATE jobs SET share = NEW.owner_user_id WHERE id = NEW.chain_id AND share IS NOT NULL;
END;
CREATE TRIGGER job_origins_own_shares_anew AFTER UPDATE OF owner_user_id ON job_origins
BEGIN
  UPDATE jobs SET share = NEW.owner_user_id WHERE id = NEW.chain_id AND share IS NOT NULL;
END;
