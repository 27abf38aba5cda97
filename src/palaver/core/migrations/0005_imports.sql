-- What was imported, so that a second import of the same files changes nothing and one that was interrupted continues.
CREATE TABLE imported_item (
    format      TEXT NOT NULL,                               -- of the files: hermes, chatgpt, palaver …
    kind        TEXT NOT NULL CHECK (kind IN ('conversation', 'account', 'home_channel', 'memory', 'job')),
    owner       TEXT NOT NULL,                               -- the person it was imported for; empty: its files name the people
    origin_id   TEXT NOT NULL,                               -- its id in these files
    session_id  TEXT,                                        -- of a conversation; it may be deleted, and does not come back
    state       TEXT NOT NULL CHECK (state IN ('writing', 'done')),
    entry_count BIGINT NOT NULL DEFAULT 0,                   -- of a conversation: how many of its entries were read and stored
    digest      TEXT NOT NULL DEFAULT '',                    -- of these entries
    last_seq    BIGINT NOT NULL DEFAULT 0,                   -- the last event that they have become
    imported_at BIGINT NOT NULL,
    PRIMARY KEY (format, kind, owner, origin_id)
) @CLUSTERED@;
CREATE INDEX imported_item_owner ON imported_item (owner) WHERE owner <> '';
CREATE INDEX imported_item_writing ON imported_item (imported_at) WHERE state = 'writing';
-- Finds whether a conversation was imported lately: retention leaves it for as long as a new one.
CREATE INDEX imported_item_session ON imported_item (session_id) WHERE session_id IS NOT NULL;
