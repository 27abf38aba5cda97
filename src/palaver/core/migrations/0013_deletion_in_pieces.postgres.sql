-- A long conversation is deleted in pieces: first it disappears, then its rows are deleted in transactions of their own.

-- 1: it is being deleted. Its row has only what its other rows refer to, and an audience without members.
ALTER TABLE session ADD COLUMN is_deleted SMALLINT NOT NULL DEFAULT 0 CHECK (is_deleted IN (0, 1));
CREATE INDEX session_deletion ON session (no) WHERE is_deleted = 1;

-- Pages are told when a conversation disappears, and not a second time when its last row goes.
DROP TRIGGER session_deleted ON session;
CREATE TRIGGER session_deleted AFTER DELETE ON session FOR EACH ROW WHEN (OLD.is_deleted = 0)
    EXECUTE FUNCTION palaver_record_deletion();
CREATE TRIGGER session_hidden AFTER UPDATE OF is_deleted ON session FOR EACH ROW
    WHEN (OLD.is_deleted = 0 AND NEW.is_deleted = 1) EXECUTE FUNCTION palaver_record_deletion();

DROP TRIGGER session_audience_changed ON session;
CREATE TRIGGER session_audience_changed AFTER UPDATE OF audience_no ON session FOR EACH ROW
    WHEN (OLD.audience_no <> NEW.audience_no AND NEW.is_deleted = 0) EXECUTE FUNCTION palaver_notify_access_change();
