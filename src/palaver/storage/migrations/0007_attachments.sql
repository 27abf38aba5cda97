-- Files that people add to what they say, copies of conversations for people without an account, and what has gone.
-- Times are microseconds since 1970, UTC.

-- A file that somebody has sent. Its bytes are in the attachments folder, under their SHA-256.
CREATE TABLE attachment (
    no          @SERIAL_FOREVER@,
    id          TEXT NOT NULL UNIQUE,
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,   -- who sent it
    name        TEXT NOT NULL,                               -- for people; never a path
    type        TEXT NOT NULL,                               -- as its bytes say
    size        BIGINT NOT NULL CHECK (size >= 0),
    sha256      TEXT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX attachment_bytes ON attachment (sha256);
CREATE INDEX attachment_person ON attachment (person_id);
CREATE INDEX attachment_age ON attachment (created_at);

-- The conversations it is used in: whoever may see one of them may see it.
CREATE TABLE attachment_use (
    session_no    BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    attachment_no BIGINT NOT NULL REFERENCES attachment (no) ON DELETE CASCADE,
    PRIMARY KEY (session_no, attachment_no)
) @CLUSTERED@;
CREATE INDEX attachment_used ON attachment_use (attachment_no);

-- A read-only copy of a conversation as it was, for whoever has its secret. It goes with its conversation.
CREATE TABLE share (
    no            @SERIAL_FOREVER@,
    id            TEXT NOT NULL UNIQUE,
    secret_hash   TEXT NOT NULL UNIQUE,                      -- SHA-256; the secret itself is not kept
    person_id     TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,   -- who made it
    session_no    BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    body          TEXT NOT NULL,                             -- JSON: the copy, never changed
    message_count BIGINT NOT NULL,
    created_at    BIGINT NOT NULL
);
CREATE INDEX share_person ON share (person_id, no);
CREATE INDEX share_session ON share (session_no);

-- Conversations that were deleted, so that whoever shows them is told. Kept for a while.
CREATE TABLE departed (
    no          @SERIAL_FOREVER@,
    session_id  TEXT NOT NULL,
    audience_no BIGINT NOT NULL
);
