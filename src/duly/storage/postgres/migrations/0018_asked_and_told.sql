-- A job that has asked for a review, or for a call-back, has begun, so its params are fixed as those of one in a worker's hands are. A delivery
-- names the review that it decided, so that it decides no other one.

DROP INDEX reviews_of_job;
CREATE INDEX reviews_of_job ON reviews (job_id) WHERE job_id IS NOT NULL;

CREATE FUNCTION duly_refuse_if_asked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM reviews WHERE job_id = OLD.id)
    OR EXISTS (SELECT FROM execution_requests WHERE waiting_job = OLD.id) THEN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = '23514', CONSTRAINT = TG_ARGV[0];
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER jobs_params_fixed_by_asking BEFORE UPDATE OF kind, payload ON jobs
FOR EACH ROW EXECUTE FUNCTION duly_refuse_if_asked('jobs_params_fixed');

ALTER TABLE inbound_deliveries ADD COLUMN review_id text COLLATE "C";
UPDATE inbound_deliveries SET review_id =
  (SELECT min(id) FROM reviews WHERE decision_key = inbound_deliveries.source || ':' || inbound_deliveries.delivery_id);
