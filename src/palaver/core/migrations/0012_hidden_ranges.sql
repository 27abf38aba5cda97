-- Readers step over events that are hidden, however many they are, such as other versions of a message.
ALTER TABLE event ADD COLUMN is_near_hidden BIGINT;          -- 1: this event, or one next to it, is or was hidden
CREATE INDEX event_near_hidden ON event (session_no, seq) WHERE is_near_hidden = 1 AND hidden_by IS NULL;

UPDATE event SET is_near_hidden = 1 WHERE no IN (
    SELECT no FROM event WHERE hidden_by IS NOT NULL
    UNION SELECT near.no FROM event hidden JOIN event near ON near.session_no = hidden.session_no AND near.seq =
        (SELECT MAX(other.seq) FROM event other WHERE other.session_no = hidden.session_no AND other.seq < hidden.seq)
        WHERE hidden.hidden_by IS NOT NULL
    UNION SELECT near.no FROM event hidden JOIN event near ON near.session_no = hidden.session_no AND near.seq =
        (SELECT MIN(other.seq) FROM event other WHERE other.session_no = hidden.session_no AND other.seq > hidden.seq)
        WHERE hidden.hidden_by IS NOT NULL
);
