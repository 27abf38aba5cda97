-- The search index, what happens by itself when a session is forked or deleted, and notifications of changes.

-- The words of messages, segmented by `domain/search_text.py`. Lexemes that begin with '@' name the audience and the
-- session, so a search never reads messages that its reader may not see.
CREATE TABLE search (
    event_no  BIGINT PRIMARY KEY REFERENCES event (no) ON DELETE CASCADE,
    words     tsvector NOT NULL
);
CREATE INDEX search_words ON search USING gin (words);

-- A fork uses the files of the session it was forked from.
CREATE FUNCTION palaver_copy_attachment_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO attachment_use (session_no, attachment_no)
    SELECT NEW.no, attachment_no FROM attachment_use WHERE session_no = NEW.parent_no;
    RETURN NULL;
END $$;

CREATE TRIGGER fork_copies_attachment_use AFTER INSERT ON session FOR EACH ROW WHEN (NEW.parent_no IS NOT NULL)
    EXECUTE FUNCTION palaver_copy_attachment_use();

CREATE FUNCTION palaver_record_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deleted_session (session_id, audience_no) VALUES (OLD.id, OLD.audience_no);
    DELETE FROM deleted_session WHERE no <= (SELECT MAX(no) FROM deleted_session) - 1000;
    PERFORM pg_notify('palaver', OLD.no::text);
    RETURN NULL;
END $$;

CREATE TRIGGER session_deleted AFTER DELETE ON session FOR EACH ROW EXECUTE FUNCTION palaver_record_deletion();

-- Tells every listening process which session has changed. A message comes with a turn, whose trigger reports both.
CREATE FUNCTION palaver_notify_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('palaver', COALESCE(NEW.session_no, 0)::text);
    RETURN NULL;
END $$;

CREATE TRIGGER event_added AFTER INSERT ON event FOR EACH ROW WHEN (NEW.kind <> 'message') EXECUTE FUNCTION palaver_notify_change();
CREATE TRIGGER turn_added AFTER INSERT ON turn FOR EACH ROW EXECUTE FUNCTION palaver_notify_change();
CREATE TRIGGER turn_changed AFTER UPDATE OF state, stop_request, input_seq ON turn FOR EACH ROW EXECUTE FUNCTION palaver_notify_change();
CREATE TRIGGER draft_added AFTER INSERT ON draft FOR EACH ROW EXECUTE FUNCTION palaver_notify_change();
CREATE TRIGGER delivery_added AFTER INSERT ON delivery FOR EACH ROW EXECUTE FUNCTION palaver_notify_change();
CREATE TRIGGER delivery_due_changed AFTER UPDATE OF due_at ON delivery FOR EACH ROW EXECUTE FUNCTION palaver_notify_change();

-- Tells every listening process that a person may see or do less than before: a sign-out, a revoked token, another role,
-- the end of a membership. -1 is ACCESS_CHANGE in engines/base.py.
CREATE FUNCTION palaver_notify_access_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('palaver', '-1');
    RETURN NULL;
END $$;

CREATE TRIGGER sign_in_ended AFTER DELETE ON sign_in FOR EACH ROW EXECUTE FUNCTION palaver_notify_access_change();
CREATE TRIGGER token_revoked AFTER DELETE ON api_token FOR EACH ROW EXECUTE FUNCTION palaver_notify_access_change();
CREATE TRIGGER role_changed AFTER UPDATE OF role ON person FOR EACH ROW WHEN (OLD.role <> NEW.role)
    EXECUTE FUNCTION palaver_notify_access_change();
CREATE TRIGGER membership_ended AFTER DELETE ON audience_member FOR EACH ROW EXECUTE FUNCTION palaver_notify_access_change();
CREATE TRIGGER session_audience_changed AFTER UPDATE OF audience_no ON session FOR EACH ROW
    WHEN (OLD.audience_no <> NEW.audience_no) EXECUTE FUNCTION palaver_notify_access_change();
