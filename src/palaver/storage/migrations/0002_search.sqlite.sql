-- Words of messages, segmented by `domain/search_text.py`; the tokenizer only splits them at the spaces.
-- `scope` holds the audience and the session, so that a search never walks through what is not the asker's.
CREATE VIRTUAL TABLE search USING fts5 (
    scope, body, content = '', contentless_delete = 1, tokenize = 'ascii'
);
