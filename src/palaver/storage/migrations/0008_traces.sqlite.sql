-- A conversation that begins as a copy uses the files of the one it was copied from; one that is deleted leaves a trace.

CREATE TRIGGER copy_uses_attachments AFTER INSERT ON session WHEN NEW.parent_no IS NOT NULL
BEGIN
    INSERT INTO attachment_use (session_no, attachment_no)
    SELECT NEW.no, attachment_no FROM attachment_use WHERE session_no = NEW.parent_no;
END;

CREATE TRIGGER session_departed AFTER DELETE ON session
BEGIN
    INSERT INTO departed (session_id, audience_no) VALUES (OLD.id, OLD.audience_no);
    DELETE FROM departed WHERE no <= (SELECT MAX(no) FROM departed) - 1000;
END;
