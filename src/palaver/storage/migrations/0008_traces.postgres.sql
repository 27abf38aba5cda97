-- A conversation that begins as a copy uses the files of the one it was copied from; one that is deleted leaves a trace.

CREATE FUNCTION palaver_copied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO attachment_use (session_no, attachment_no)
    SELECT NEW.no, attachment_no FROM attachment_use WHERE session_no = NEW.parent_no;
    RETURN NULL;
END $$;

CREATE TRIGGER copy_uses_attachments AFTER INSERT ON session FOR EACH ROW WHEN (NEW.parent_no IS NOT NULL)
    EXECUTE FUNCTION palaver_copied();

CREATE FUNCTION palaver_departed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO departed (session_id, audience_no) VALUES (OLD.id, OLD.audience_no);
    DELETE FROM departed WHERE no <= (SELECT MAX(no) FROM departed) - 1000;
    PERFORM pg_notify('palaver', OLD.no::text);
    RETURN NULL;
END $$;

CREATE TRIGGER session_departed AFTER DELETE ON session FOR EACH ROW EXECUTE FUNCTION palaver_departed();
