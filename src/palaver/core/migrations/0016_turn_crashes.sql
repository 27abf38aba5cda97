-- A process that dies is no fault of the messages that it had claimed: only attempts that had called the agent count.
ALTER TABLE turn ADD COLUMN begun_attempt BIGINT NOT NULL DEFAULT 0;   -- the last attempt that is recorded to have called it
ALTER TABLE turn ADD COLUMN crash_count SMALLINT NOT NULL DEFAULT 0;   -- how many attempts died after they had called it
