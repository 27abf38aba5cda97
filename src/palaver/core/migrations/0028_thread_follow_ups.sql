-- Older versions may go on writing.
-- In a thread, people talk on with the agent without mentioning it, until one of them addresses another person.
ALTER TABLE group_message ADD COLUMN is_to_others SMALLINT NOT NULL DEFAULT 0;   -- or follows one that is
