-- Versions of messages and answers: the events that start or choose a version, found by the message they belong to.
ALTER TABLE event ADD COLUMN version_of BIGINT;              -- seq of the first version; only of these two kinds of events
CREATE INDEX event_version ON event (session_no, version_of, seq) WHERE version_of IS NOT NULL;
CREATE INDEX event_version_change ON event (session_no, seq) WHERE version_of IS NOT NULL;
