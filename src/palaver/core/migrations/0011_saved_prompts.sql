-- Texts with placeholders that people save to send them again.
CREATE TABLE saved_prompt (
    id          TEXT PRIMARY KEY,
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    name_key    TEXT NOT NULL,                               -- the name, case folded
    text        TEXT NOT NULL,                               -- {{word}} is a placeholder
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    UNIQUE (person_id, name_key)
);

-- What the agent is told in every conversation of a project.
ALTER TABLE project ADD COLUMN instructions TEXT;

-- The steps of the first visit that a person has skipped: names, with a comma between them.
ALTER TABLE account ADD COLUMN skipped_steps TEXT NOT NULL DEFAULT '';
