-- The search index, what happens by itself when a session is forked or deleted, and a mark for changes of access.

-- The words of messages, segmented by `domain/search_text.py`; the tokenizer only splits them at the spaces.
-- `scope` holds the audience and the session, so a search never reads messages that its reader may not see.
CREATE VIRTUAL TABLE search USING fts5 (
    scope, body, content = '', contentless_delete = 1, tokenize = 'ascii'
);

-- A fork uses the files of the session it was forked from.
CREATE TRIGGER fork_copies_attachment_use AFTER INSERT ON session WHEN NEW.parent_no IS NOT NULL
BEGIN
    INSERT INTO attachment_use (session_no, attachment_no)
    SELECT NEW.no, attachment_no FROM attachment_use WHERE session_no = NEW.parent_no;
END;

CREATE TRIGGER session_deleted AFTER DELETE ON session
BEGIN
    INSERT INTO deleted_session (session_id, audience_no) VALUES (OLD.id, OLD.audience_no);
    DELETE FROM deleted_session WHERE no <= (SELECT MAX(no) FROM deleted_session) - 1000;
END;

-- Counts changes after which a person may see or do less than before: a sign-out, a revoked token, another role, the end
-- of a membership. Every process compares it, to end the streams of people who have lost access.
CREATE TABLE access_change (id INTEGER PRIMARY KEY CHECK (id = 1), no INTEGER NOT NULL);
INSERT INTO access_change VALUES (1, 0);

CREATE TRIGGER sign_in_ended AFTER DELETE ON sign_in BEGIN UPDATE access_change SET no = no + 1 WHERE id = 1; END;
CREATE TRIGGER token_revoked AFTER DELETE ON api_token BEGIN UPDATE access_change SET no = no + 1 WHERE id = 1; END;
CREATE TRIGGER role_changed AFTER UPDATE OF role ON person WHEN OLD.role <> NEW.role
    BEGIN UPDATE access_change SET no = no + 1 WHERE id = 1; END;
CREATE TRIGGER membership_ended AFTER DELETE ON audience_member BEGIN UPDATE access_change SET no = no + 1 WHERE id = 1; END;
CREATE TRIGGER session_audience_changed AFTER UPDATE OF audience_no ON session WHEN OLD.audience_no <> NEW.audience_no
    BEGIN UPDATE access_change SET no = no + 1 WHERE id = 1; END;
