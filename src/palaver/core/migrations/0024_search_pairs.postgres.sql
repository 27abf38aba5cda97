-- The search index now also has every two characters that follow one another in scripts without spaces. The messages of
-- the sessions listed here may lack them: the indexer takes a few sessions at a time, and indexes them again.
CREATE TABLE search_rebuild (
    session_no  BIGINT PRIMARY KEY REFERENCES session (no) ON DELETE CASCADE,
    up_to_seq   BIGINT                                       -- it is being indexed again up to here; NULL: later
);

-- Sessions with such characters, or with others that are folded to such characters. Text in ASCII has none.
INSERT INTO search_rebuild (session_no) SELECT no FROM session WHERE indexed_seq > 0 AND EXISTS (
    SELECT 1 FROM event WHERE session_no = session.no AND char_length(content) < octet_length(content) AND content ~
        '[\u0E01-\u11FF\u1780-\u17FF\u2E80-\uFAFF\uFF66-\uFFDC\U0001AFF0-\U0001B2FF\U0001F200-\U0001F2FF\U00020000-\U0003FFFF]');
