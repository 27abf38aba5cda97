-- People, places and conversations.
-- @SERIAL@ is the engine's growing primary key; @ROOMY@ leaves room for updates in place. Times are microseconds since 1970, UTC. Flags are 0 or 1.

-- An audience is the set of people who may see a session: one person's own, or those who speak in a shared lane.
CREATE TABLE audience (
    no          @SERIAL@,
    created_at  BIGINT NOT NULL
);

CREATE TABLE person (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('owner', 'member', 'guest')),
    audience_no BIGINT NOT NULL REFERENCES audience (no),   -- where their own new sessions go
    created_at  BIGINT NOT NULL
);

CREATE TABLE audience_member (
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    audience_no BIGINT NOT NULL REFERENCES audience (no) ON DELETE CASCADE,
    since       BIGINT NOT NULL,
    PRIMARY KEY (person_id, audience_no)
);
CREATE INDEX audience_people ON audience_member (audience_no);

-- A platform account that is known to be somebody's.
CREATE TABLE identity (
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (platform, account)
);
CREATE INDEX identity_person ON identity (person_id);

CREATE TABLE project (
    no          @SERIAL@,
    id          TEXT NOT NULL UNIQUE,
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    name_key    TEXT NOT NULL,                               -- the name, case folded
    colour      TEXT,
    created_at  BIGINT NOT NULL,
    UNIQUE (person_id, name_key)
);

CREATE TABLE session (
    no                  @SERIAL_FOREVER@,                    -- never given twice, even after a deletion
    id                  TEXT NOT NULL UNIQUE,
    key                 TEXT NOT NULL,
    platform            TEXT NOT NULL,
    chat_type           TEXT NOT NULL,
    source              TEXT NOT NULL,                       -- JSON
    audience_no         BIGINT NOT NULL REFERENCES audience (no),
    shared              SMALLINT NOT NULL CHECK (shared IN (0, 1)),
    title               TEXT,
    title_base          TEXT,                                -- case folded, without its number
    title_number        BIGINT,
    preview             TEXT NOT NULL DEFAULT '',
    project_no          BIGINT REFERENCES project (no) ON DELETE SET NULL,
    parent_no           BIGINT REFERENCES session (no) ON DELETE SET NULL,
    created_at          BIGINT NOT NULL,
    active_at           BIGINT,                              -- orders lists; NULL until the first message
    last_message_at     BIGINT,
    last_human_at       BIGINT,
    ended_at            BIGINT,
    end_reason          TEXT,
    start_reason        TEXT NOT NULL,
    started_after_activity SMALLINT NOT NULL DEFAULT 0,
    pinned_at           BIGINT,
    archived_at         BIGINT,
    last_seq            BIGINT NOT NULL DEFAULT 0,           -- of the last event
    redo_seq            BIGINT,                              -- the undo that a redo would take back
    indexed_seq         BIGINT NOT NULL DEFAULT 0,           -- up to where the search index has followed
    unindexed           SMALLINT NOT NULL DEFAULT 0 CHECK (unindexed IN (0, 1)),   -- there are messages after it
    message_count       BIGINT NOT NULL DEFAULT 0,           -- visible messages
    model               TEXT,
    provider            TEXT,
    last_prompt_tokens  BIGINT NOT NULL DEFAULT 0,
    input_tokens        BIGINT NOT NULL DEFAULT 0,
    output_tokens       BIGINT NOT NULL DEFAULT 0,
    cache_read_tokens   BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens  BIGINT NOT NULL DEFAULT 0,
    reasoning_tokens    BIGINT NOT NULL DEFAULT 0,
    cost_nanos          BIGINT,                              -- NULL: nothing known, which is not zero
    cost_status         TEXT NOT NULL DEFAULT 'unknown' CHECK (cost_status IN ('unknown', 'estimated', 'actual')),
    cost_source         TEXT,
    unpriced_turns      BIGINT NOT NULL DEFAULT 0,
    CHECK (message_count >= 0),
    CHECK ((title IS NULL) = (title_base IS NULL)),
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
) @ROOMY@;
CREATE INDEX session_id_seen ON session (audience_no, id);
CREATE INDEX session_recent ON session (active_at, no) WHERE active_at IS NOT NULL AND archived_at IS NULL;
CREATE INDEX session_seen ON session (audience_no, active_at, no) WHERE active_at IS NOT NULL AND archived_at IS NULL;
CREATE INDEX session_archived ON session (audience_no, active_at, no) WHERE active_at IS NOT NULL AND archived_at IS NOT NULL;
CREATE INDEX session_archived_recent ON session (active_at, no) WHERE active_at IS NOT NULL AND archived_at IS NOT NULL;
CREATE INDEX session_pinned ON session (audience_no, active_at, no) WHERE pinned_at IS NOT NULL;
CREATE INDEX session_in_project ON session (project_no, active_at, no) WHERE project_no IS NOT NULL;
CREATE INDEX session_parent ON session (parent_no) WHERE parent_no IS NOT NULL;
CREATE UNIQUE INDEX one_title_per_audience ON session (audience_no, title_base, title_number) WHERE title IS NOT NULL;
CREATE INDEX session_unindexed ON session (no) WHERE unindexed = 1;

-- A lane and the session it is on.
CREATE TABLE route (
    key         TEXT PRIMARY KEY,
    session_no  BIGINT REFERENCES session (no) ON DELETE SET NULL,
    source      TEXT NOT NULL,                               -- JSON: the place itself, whatever session it is on
    audience_no BIGINT NOT NULL REFERENCES audience (no),
    shared      SMALLINT NOT NULL CHECK (shared IN (0, 1)),
    updated_at  BIGINT NOT NULL
) @CLUSTERED@;
CREATE INDEX route_session ON route (session_no);

-- Every move of a lane from one session to another, so that each can be taken back.
CREATE TABLE route_change (
    no          @SERIAL@,
    key         TEXT NOT NULL REFERENCES route (key) ON DELETE CASCADE,
    from_no     BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    to_no       BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    reason      TEXT NOT NULL,
    at          BIGINT NOT NULL,
    undone_at   BIGINT
);
CREATE INDEX route_change_key ON route_change (key, no);
CREATE INDEX route_change_from ON route_change (from_no);
CREATE INDEX route_change_to ON route_change (to_no);

-- The log. Nothing here is ever changed but `hidden_by`, the event that took a message out of the conversation.
CREATE TABLE event (
    no                  @SERIAL@,
    session_no          BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    seq                 BIGINT NOT NULL,
    kind                TEXT NOT NULL,
    at                  BIGINT NOT NULL,
    role                TEXT,
    content             TEXT,                                -- the words of a message
    body                TEXT,                                -- JSON: whatever else the event carries
    person_id           TEXT,
    platform_message_id TEXT,
    hidden_by           BIGINT
);
CREATE UNIQUE INDEX event_seq ON event (session_no, seq);

-- What each turn used. Kept when a session is deleted: money spent stays spent.
CREATE TABLE usage (
    session_no          BIGINT NOT NULL,
    turn_id             TEXT NOT NULL,
    model               TEXT NOT NULL,
    provider            TEXT,
    at                  BIGINT NOT NULL,
    input_tokens        BIGINT NOT NULL,
    output_tokens       BIGINT NOT NULL,
    cache_read_tokens   BIGINT NOT NULL,
    cache_write_tokens  BIGINT NOT NULL,
    reasoning_tokens    BIGINT NOT NULL,
    cost_nanos          BIGINT,
    cost_status         TEXT NOT NULL CHECK (cost_status IN ('unknown', 'estimated', 'actual')),
    cost_source         TEXT,
    PRIMARY KEY (session_no, turn_id, model)
) @CLUSTERED@;

-- One run of the agent for one accepted input.
CREATE TABLE turn (
    no          @SERIAL@,
    id          TEXT NOT NULL UNIQUE,
    session_no  BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    input_seq   BIGINT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'interrupted')),
    attempt     BIGINT NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_until BIGINT,
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    error       TEXT
);
CREATE UNIQUE INDEX one_running_turn ON turn (session_no) WHERE state = 'running';
CREATE INDEX turn_session ON turn (session_no, no);
CREATE INDEX turn_queued ON turn (no) WHERE state = 'queued';

-- One answer on its way to one address.
CREATE TABLE delivery (
    no          @SERIAL@,
    id          TEXT NOT NULL UNIQUE,
    session_no  BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    turn_no     BIGINT REFERENCES turn (no) ON DELETE CASCADE,
    address     TEXT NOT NULL,
    content     TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'uncertain', 'failed')),
    attempts    BIGINT NOT NULL DEFAULT 0,
    due_at      BIGINT NOT NULL,
    receipt     TEXT,
    error       TEXT,
    created_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX one_delivery_per_address ON delivery (turn_no, address) WHERE turn_no IS NOT NULL;
CREATE INDEX delivery_session ON delivery (session_no);
CREATE INDEX delivery_due ON delivery (address, no) WHERE state IN ('pending', 'sending');
