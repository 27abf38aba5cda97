-- The search index now also has every two characters that follow one another in scripts without spaces. The messages of
-- the sessions listed here may lack them: the indexer takes a few sessions at a time, and indexes them again.
CREATE TABLE search_rebuild (
    session_no  INTEGER PRIMARY KEY REFERENCES session (no) ON DELETE CASCADE,
    up_to_seq   BIGINT                                       -- it is being indexed again up to here; NULL: later
);

-- Sessions with such characters, or with others that are folded to such characters. Text in ASCII has none; and without
-- any word that begins in this part of Unicode in the index, no text is read at all.
CREATE VIRTUAL TABLE temp.search_word USING fts5vocab(main, search, row);
INSERT INTO search_rebuild (session_no) SELECT no FROM session WHERE indexed_seq > 0
    AND (SELECT EXISTS (SELECT 1 FROM search_word WHERE term >= char(0x0E01))) AND EXISTS (
    SELECT 1 FROM event WHERE session_no = session.no AND length(content) < length(CAST(content AS BLOB)) AND content GLOB
        '*[' || char(0x0E01) || '-' || char(0x11FF) || char(0x1780) || '-' || char(0x17FF)
        || char(0x2E80) || '-' || char(0xFAFF) || char(0xFF66) || '-' || char(0xFFDC)
        || char(0x1AFF0) || '-' || char(0x1B2FF) || char(0x1F200) || '-' || char(0x1F2FF)
        || char(0x20000) || '-' || char(0x3FFFF) || ']*');
DROP TABLE temp.search_word;
