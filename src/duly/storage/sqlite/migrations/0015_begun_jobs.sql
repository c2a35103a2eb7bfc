-- What was found out after the fact: a job that has asked for a review has begun, so its params are fixed as those of one
-- in a worker's hands are.

DROP INDEX reviews_of_job;
CREATE INDEX reviews_of_job ON reviews (job_id) WHERE job_id IS NOT NULL;

CREATE TRIGGER jobs_params_fixed_by_reviews BEFORE UPDATE OF kind, payload ON jobs
WHEN EXISTS (SELECT 1 FROM reviews WHERE job_id = OLD.id)
BEGIN
  SELECT RAISE(ABORT, 'jobs_params_fixed');
END;
