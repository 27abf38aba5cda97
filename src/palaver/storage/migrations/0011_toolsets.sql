-- Toolsets that somebody has switched off for one conversation: a JSON list of their names; NULL: none.
ALTER TABLE session ADD COLUMN toolsets_off TEXT;
