-- The search index, and what happens by itself when a session is forked or deleted.

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
