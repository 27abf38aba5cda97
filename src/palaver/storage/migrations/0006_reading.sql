-- What somebody has read, what is spent on whom, and when things ended.

-- How far each person has read in a conversation.
CREATE TABLE read_mark (
    session_no  BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    seq         BIGINT NOT NULL,                             -- the last event they have seen
    at          BIGINT NOT NULL,
    PRIMARY KEY (session_no, person_id)
) @CLUSTERED@;
CREATE INDEX read_mark_person ON read_mark (person_id);

-- A report must not need the conversation: money spent stays spent when it is deleted.
ALTER TABLE usage ADD COLUMN platform TEXT;
ALTER TABLE usage ADD COLUMN audience_no BIGINT;
UPDATE usage SET
    platform = (SELECT s.platform FROM session s WHERE s.no = usage.session_no),
    audience_no = (SELECT s.audience_no FROM session s WHERE s.no = usage.session_no);
CREATE INDEX usage_at ON usage (at);
CREATE INDEX usage_seen ON usage (audience_no, at);

CREATE INDEX person_audience ON person (audience_no);

-- What has ended since the last look, for whoever counts.
CREATE INDEX turn_ended ON turn (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX delivery_ended ON delivery (ended_at) WHERE ended_at IS NOT NULL;
