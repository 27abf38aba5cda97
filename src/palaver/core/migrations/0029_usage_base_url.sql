-- Older versions may go on writing.
-- The address of the provider that a program of its own has used, where a provider has several.
ALTER TABLE usage ADD COLUMN base_url TEXT;
