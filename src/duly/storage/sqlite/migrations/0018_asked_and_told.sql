-- A job that has asked for a review, or for a call-back, has begun, so its params are fixed as those of one in a worker's hands are. A delivery
-- names the review that it decided, so that it decides no other one.

DROP INDEX reviews_of_job;
CREATE INDEX reviews_of_job ON reviews (job_id) WHERE job_id IS NOT NULL;

CREATE TRIGGER jobs_params_fixed_by_asking BEFORE UPDATE OF kind, payload ON jobs
WHEN EXISTS (SELECT 1 FROM reviews WHERE job_id = OLD.id)
  OR EXISTS (SELECT 1 FROM execution_requests WHERE waiting_job = OLD.id)
BEGIN
  SELECT RAISE(ABORT, 'jobs_params_fixed');
END;

ALTER TABLE inbound_deliveries ADD COLUMN review_id TEXT;
UPDATE inbound_deliveries SET review_id =
  (SELECT min(id) FROM reviews WHERE decision_key = inbound_deliveries.source || ':' || inbound_deliveries.delivery_id);
