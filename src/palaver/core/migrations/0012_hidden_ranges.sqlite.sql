-- The same as 0012_hidden_ranges.sql, in time that grows with the number of events: SQLite runs the UPDATE there by
-- comparing every hidden event with all others of its conversation. The runner prefers an engine's own file.
ALTER TABLE event ADD COLUMN is_near_hidden BIGINT;          -- 1: this event, or one next to it, is or was hidden
CREATE INDEX event_near_hidden ON event (session_no, seq) WHERE is_near_hidden = 1 AND hidden_by IS NULL;

UPDATE event SET is_near_hidden = 1 WHERE no IN (
    SELECT no FROM event WHERE hidden_by IS NOT NULL
    UNION SELECT (SELECT near.no FROM event near WHERE near.session_no = hidden.session_no AND near.seq < hidden.seq
        ORDER BY near.seq DESC LIMIT 1) FROM event hidden WHERE hidden.hidden_by IS NOT NULL
    UNION SELECT (SELECT near.no FROM event near WHERE near.session_no = hidden.session_no AND near.seq > hidden.seq
        ORDER BY near.seq LIMIT 1) FROM event hidden WHERE hidden.hidden_by IS NOT NULL
);
