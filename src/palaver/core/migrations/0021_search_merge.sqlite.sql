-- Older versions may go on writing.
-- The search index merges its parts only when Palaver tells it to, a few pages at a time: by itself, it merges hundreds of
-- pages in the transaction of the message that happens to come then. With so many parts on one level it still does.
INSERT INTO search (search, rank) VALUES ('automerge', 0);
INSERT INTO search (search, rank) VALUES ('crisismerge', 64);
