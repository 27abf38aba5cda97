-- Wakes the scheduler of every process when a job or a run has changed.
CREATE FUNCTION palaver_notify_job_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('palaver', '0');
    RETURN NULL;
END $$;

CREATE TRIGGER job_changed AFTER INSERT OR UPDATE OF state, next_slot ON job FOR EACH ROW EXECUTE FUNCTION palaver_notify_job_change();
CREATE TRIGGER job_run_changed AFTER INSERT OR UPDATE OF state ON job_run FOR EACH ROW EXECUTE FUNCTION palaver_notify_job_change();
