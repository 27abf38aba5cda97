-- Shared links that expire.
ALTER TABLE share ADD COLUMN expires_at BIGINT;              -- NULL: never
CREATE INDEX share_expired ON share (expires_at) WHERE expires_at IS NOT NULL;

-- Messages in the search index now carry who wrote them, so all of them are indexed again.
UPDATE session SET indexed_seq = 0, unindexed = 1 WHERE last_seq > 0;
