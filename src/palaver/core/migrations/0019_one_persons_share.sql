-- A search lets the index catch up with the sessions that its reader may see, however many others wait.
DROP INDEX session_unindexed;
CREATE INDEX session_unindexed ON session (audience_no, no) WHERE unindexed = 1;

-- How much space the files of a person take, whatever their number: each upload asks.
CREATE INDEX attachment_person_size ON attachment (person_id, sha256, size);
