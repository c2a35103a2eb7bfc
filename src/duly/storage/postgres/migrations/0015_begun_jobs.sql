-- What was found out after the fact: a job that has asked for a review has begun, so its params are fixed as those of one
-- in a worker's hands are.

DROP INDEX reviews_of_job;
CREATE INDEX reviews_of_job ON reviews (job_id) WHERE job_id IS NOT NULL;

CREATE FUNCTION duly_refuse_if_asked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM reviews WHERE job_id = OLD.id) THEN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = '23514', CONSTRAINT = TG_ARGV[0];
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER jobs_params_fixed_by_reviews BEFORE UPDATE OF kind, payload ON jobs
FOR EACH ROW EXECUTE FUNCTION duly_refuse_if_asked('jobs_params_fixed');
