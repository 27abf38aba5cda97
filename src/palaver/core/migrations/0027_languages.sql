-- Older versions may go on writing.
-- The language of a person: as they have chosen it, and as each platform says.
ALTER TABLE person ADD COLUMN language TEXT;     -- NULL: that of the platform or, if it says none, the gateway's
ALTER TABLE identity ADD COLUMN language TEXT;   -- NULL: unknown
