-- Linking needs both sides, and can be undone.

-- A code that an account has sent waits here until both sides have confirmed. Its columns are NULL until then.
ALTER TABLE link_code ADD COLUMN claim_source TEXT;          -- JSON: where the code was sent from
ALTER TABLE link_code ADD COLUMN claim_platform TEXT;        -- the account that has sent it, as in `identity`
ALTER TABLE link_code ADD COLUMN claim_account TEXT;
ALTER TABLE link_code ADD COLUMN claim_person_id TEXT REFERENCES person (id) ON DELETE CASCADE;   -- whose account that was; NULL: a stranger's
ALTER TABLE link_code ADD COLUMN is_confirmed SMALLINT NOT NULL DEFAULT 0;         -- by the person who asked for the code
ALTER TABLE link_code ADD COLUMN is_claim_confirmed SMALLINT NOT NULL DEFAULT 0;   -- by the account that has sent it
CREATE INDEX link_code_claim ON link_code (claim_platform, claim_account) WHERE claim_account IS NOT NULL;
CREATE INDEX link_code_claim_person ON link_code (claim_person_id) WHERE claim_person_id IS NOT NULL;

-- The role that a person has without the accounts that are linked to them, or had before they were linked to another
-- person. NULL: `role` is their own.
ALTER TABLE person ADD COLUMN unlinked_role TEXT CHECK (unlinked_role IN ('owner', 'member', 'guest'));

-- What a person had when they were linked to another, by table and key: /unlink returns it to them.
CREATE TABLE linked_row (
    table_name  TEXT NOT NULL,
    row_key     TEXT NOT NULL,                               -- as `storage/person_merge.py` writes it
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,   -- whom it came from
    PRIMARY KEY (table_name, row_key, person_id)
) @CLUSTERED@;
CREATE INDEX linked_row_person ON linked_row (person_id, table_name);
