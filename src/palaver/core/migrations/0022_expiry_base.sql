-- Older versions may go on writing.
-- Conversations whose reset policy may have run out are found by a time that messages need not change. Before, each message
-- of a person moved an entry of an index for that. The expiry watcher brings it up to date, also where it is still 0.
ALTER TABLE session ADD COLUMN expiry_base BIGINT NOT NULL DEFAULT 0;   -- not after the last activity of a human
DROP INDEX session_open_activity;
CREATE INDEX session_open_activity ON session (platform, chat_type, expiry_base, no) WHERE ended_at IS NULL;
