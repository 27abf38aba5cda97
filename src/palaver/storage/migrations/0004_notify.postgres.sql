-- Tells every process that listens which conversation has changed. Messages come with a turn, which tells of both.

CREATE FUNCTION palaver_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('palaver', COALESCE(NEW.session_no, 0)::text);
    RETURN NULL;
END $$;

CREATE TRIGGER event_changed AFTER INSERT ON event FOR EACH ROW WHEN (NEW.kind <> 'message') EXECUTE FUNCTION palaver_changed();
CREATE TRIGGER turn_queued AFTER INSERT ON turn FOR EACH ROW EXECUTE FUNCTION palaver_changed();
CREATE TRIGGER turn_changed AFTER UPDATE OF state, wish, input_seq ON turn FOR EACH ROW EXECUTE FUNCTION palaver_changed();
CREATE TRIGGER draft_grown AFTER INSERT ON draft FOR EACH ROW EXECUTE FUNCTION palaver_changed();
CREATE TRIGGER delivery_queued AFTER INSERT ON delivery FOR EACH ROW EXECUTE FUNCTION palaver_changed();
CREATE TRIGGER delivery_next AFTER UPDATE OF due_at ON delivery FOR EACH ROW EXECUTE FUNCTION palaver_changed();
