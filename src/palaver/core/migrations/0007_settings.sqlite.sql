-- Settings that owners change while Palaver runs. config.yaml and environment variables win over them.

-- One setting. A value is JSON: {"value": …}, or {"sealed": {…}} for a secret, which is encrypted.
CREATE TABLE setting (
    key         TEXT PRIMARY KEY,                            -- dotted, as in docs/reference/settings.md
    value       TEXT NOT NULL,
    set_by      TEXT REFERENCES person (id) ON DELETE SET NULL,
    set_at      BIGINT NOT NULL
);

CREATE INDEX setting_person ON setting (set_by);

-- What was changed together: all of it is in force, or none. The newest are kept.
CREATE TABLE setting_change (
    no          @SERIAL_KEY_NEVER_REUSED@,
    person_id   TEXT REFERENCES person (id) ON DELETE SET NULL,
    origin      TEXT NOT NULL CHECK (origin IN ('page', 'terminal')),
    undoes      BIGINT,                                      -- the change that this one has undone
    changed_at  BIGINT NOT NULL
);

CREATE INDEX setting_change_person ON setting_change (person_id);

-- One key of a change, with its value before and after; NULL: it was not set.
CREATE TABLE setting_change_item (
    change_no   BIGINT NOT NULL REFERENCES setting_change (no) ON DELETE CASCADE,
    key         TEXT NOT NULL,
    before      TEXT,
    after       TEXT,
    PRIMARY KEY (change_no, key)
);

-- One row, since the first change.
CREATE TABLE setting_state (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    version     BIGINT NOT NULL,                             -- counts the changes: a process that knows this number is up to date
    key_id      TEXT                                         -- names the key that secrets are encrypted with; NULL: there is none yet
);
