-- Older versions may go on writing.
-- Says of each migration whether programs that don't know it may go on writing, for those programs.
ALTER TABLE migration ADD COLUMN lets_older_write SMALLINT NOT NULL DEFAULT 0;
