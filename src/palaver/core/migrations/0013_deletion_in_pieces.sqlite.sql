-- A long conversation is deleted in pieces: first it disappears, then its rows are deleted in transactions of their own.

-- 1: it is being deleted. Its row has only what its other rows refer to, and an audience without members.
ALTER TABLE session ADD COLUMN is_deleted SMALLINT NOT NULL DEFAULT 0 CHECK (is_deleted IN (0, 1));
CREATE INDEX session_deletion ON session (no) WHERE is_deleted = 1;

-- Pages are told when a conversation disappears, and not a second time when its last row goes.
DROP TRIGGER session_deleted;
CREATE TRIGGER session_deleted AFTER DELETE ON session WHEN OLD.is_deleted = 0
BEGIN
    INSERT INTO deleted_session (session_id, audience_no) VALUES (OLD.id, OLD.audience_no);
    DELETE FROM deleted_session WHERE no <= (SELECT MAX(no) FROM deleted_session) - 1000;
END;
CREATE TRIGGER session_hidden AFTER UPDATE OF is_deleted ON session WHEN OLD.is_deleted = 0 AND NEW.is_deleted = 1
BEGIN
    INSERT INTO deleted_session (session_id, audience_no) VALUES (OLD.id, OLD.audience_no);
    DELETE FROM deleted_session WHERE no <= (SELECT MAX(no) FROM deleted_session) - 1000;
END;

DROP TRIGGER session_audience_changed;
CREATE TRIGGER session_audience_changed AFTER UPDATE OF audience_no ON session WHEN OLD.audience_no <> NEW.audience_no AND NEW.is_deleted = 0
    BEGIN UPDATE access_change SET no = no + 1 WHERE id = 1; END;

-- Deleted words leave the index when its parts are merged anyway: with FTS5's default, a deletion of many would wait for that.
INSERT INTO search (search, rank) VALUES ('deletemerge', 0);
