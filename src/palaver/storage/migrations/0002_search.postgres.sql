-- Words of messages, segmented by `domain/search_text.py`. Lexemes that begin with '@' name the audience and the
-- session, so that a search never walks through what is not the asker's.
CREATE TABLE search (
    event_no  BIGINT PRIMARY KEY REFERENCES event (no) ON DELETE CASCADE,
    words     tsvector NOT NULL
);
CREATE INDEX search_words ON search USING gin (words);
