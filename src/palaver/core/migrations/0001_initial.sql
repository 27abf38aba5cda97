-- The schema. Words between @ signs differ between the engines (see DIALECT in engines/sqlite.py and postgres.py).
-- Columns named `no` are internal integer keys; `id` is what people and programs use. Times are microseconds since
-- 1970, UTC. Flags are 0 or 1. Columns with @BYTE_ORDER@ are compared byte by byte on both engines, so that everything
-- that begins alike is one range of an index.

-- ---- people ----------------------------------------------------------------------------------------------

-- A set of people who may see a session: one person alone, or everybody who writes in a shared lane.
CREATE TABLE audience (
    no          @SERIAL_KEY@,
    created_at  BIGINT NOT NULL
);

CREATE TABLE person (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('owner', 'member', 'guest')),
    audience_no BIGINT NOT NULL REFERENCES audience (no),    -- their own audience: their new sessions belong to it
    merged_into TEXT REFERENCES person (id),                 -- the same human under another id: this row only keeps its name and audience
    created_at  BIGINT NOT NULL
);
CREATE INDEX person_merged ON person (merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX person_created ON person (created_at, id);
CREATE INDEX person_audience ON person (audience_no);

CREATE TABLE audience_member (
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    audience_no BIGINT NOT NULL REFERENCES audience (no) ON DELETE CASCADE,
    joined_at   BIGINT NOT NULL,
    PRIMARY KEY (person_id, audience_no)
);
CREATE INDEX audience_member_audience ON audience_member (audience_no);

-- A platform account that belongs to a person.
CREATE TABLE identity (
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    dm_source   TEXT,                                        -- JSON: where they last wrote a direct message from
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (platform, account)
);
CREATE INDEX identity_person ON identity (person_id);

-- The ids of one person on a platform where a message may carry any of them: a phone number, a LID, a BSUID.
CREATE TABLE sender_id (
    platform    TEXT NOT NULL,
    id          TEXT NOT NULL,
    main_id     TEXT NOT NULL,                               -- `identity.account`, and the chat of their direct messages
    is_lasting  SMALLINT NOT NULL CHECK (is_lasting IN (0, 1)),   -- the person's present id, which nobody else ever gets
    seen_at     BIGINT NOT NULL,
    PRIMARY KEY (platform, id),
    FOREIGN KEY (platform, main_id) REFERENCES identity (platform, account) ON DELETE CASCADE ON UPDATE CASCADE
) @CLUSTERED@;
CREATE INDEX sender_id_main ON sender_id (platform, main_id);

-- A stranger who has asked for access with a direct message. An owner approves it with the code that the stranger got.
CREATE TABLE pairing_request (
    no          @SERIAL_KEY_NEVER_REUSED@,
    id          TEXT NOT NULL UNIQUE,
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,                               -- the stranger's, as in `identity`
    name        TEXT NOT NULL,                               -- for people to read
    source      TEXT NOT NULL,                               -- JSON: where the stranger is told the outcome
    digest      TEXT NOT NULL UNIQUE,                        -- of the code
    created_at  BIGINT NOT NULL,                             -- of the code
    expires_at  BIGINT NOT NULL,
    denied_at   BIGINT,                                      -- no new code is given until it has expired
    UNIQUE (platform, account)
);
CREATE INDEX pairing_request_expires ON pairing_request (expires_at);

-- A code with which a person proves from another account that it is theirs, too.
CREATE TABLE link_code (
    digest      TEXT PRIMARY KEY,
    person_id   TEXT NOT NULL UNIQUE REFERENCES person (id) ON DELETE CASCADE,   -- a new code replaces the one before
    source      TEXT NOT NULL,                               -- JSON: where the code was asked for, which is told of its use
    expires_at  BIGINT NOT NULL
);

-- A group in which people without access of their own may talk to the agent, or the direct messages of one guest.
CREATE TABLE chat_access (
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,                               -- ours; empty for the only one
    chat_id     TEXT NOT NULL,
    person_id   TEXT REFERENCES person (id) ON DELETE CASCADE,   -- only this guest; NULL: everybody there
    granted_by  TEXT,                                        -- person
    granted_at  BIGINT NOT NULL,
    PRIMARY KEY (platform, account, chat_id)
);
CREATE INDEX chat_access_person ON chat_access (person_id) WHERE person_id IS NOT NULL;

-- How many messages each person has sent lately. Stored, so that all processes count together.
CREATE TABLE message_rate (
    person_id   TEXT PRIMARY KEY REFERENCES person (id) ON DELETE CASCADE,
    busy_until  BIGINT NOT NULL                              -- each message moves it on; too far ahead is too often
);

-- ---- signing in ------------------------------------------------------------------------------------------
-- No secret is stored: random ones are stored as SHA-256 digests, passwords as Argon2id hashes.

-- A person who can sign in. Deleting the row deletes all their sign-ins, tokens, links and passkeys.
CREATE TABLE account (
    person_id     TEXT PRIMARY KEY REFERENCES person (id) ON DELETE CASCADE,
    name_key      TEXT NOT NULL UNIQUE,                      -- the person's name, case folded: the sign-in name
    password_hash TEXT,                                      -- Argon2id; NULL: no password
    is_welcomed   SMALLINT NOT NULL DEFAULT 0,               -- has chosen a name and a way to sign in, or skipped that
    created_at    BIGINT NOT NULL
);

-- A link that signs a person in once.
CREATE TABLE sign_in_link (
    digest      TEXT PRIMARY KEY,
    person_id   TEXT NOT NULL REFERENCES account (person_id) ON DELETE CASCADE,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX sign_in_link_person ON sign_in_link (person_id);

-- A browser in which a person is signed in.
CREATE TABLE sign_in (
    id           TEXT PRIMARY KEY,
    digest       TEXT NOT NULL UNIQUE,                       -- of the cookie
    person_id    TEXT NOT NULL REFERENCES account (person_id) ON DELETE CASCADE,
    method       TEXT NOT NULL CHECK (method IN ('link', 'password', 'passkey')),
    device       TEXT NOT NULL,
    ip_address   TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL
);
CREATE INDEX sign_in_person ON sign_in (person_id, created_at);

-- A token with which a program uses the API.
CREATE TABLE api_token (
    id           TEXT PRIMARY KEY,
    digest       TEXT NOT NULL UNIQUE,
    person_id    TEXT NOT NULL REFERENCES account (person_id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    scopes       TEXT NOT NULL,                              -- separated by spaces
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    expires_at   BIGINT
);
CREATE INDEX api_token_person ON api_token (person_id, created_at);

-- The public half of a WebAuthn credential.
CREATE TABLE passkey (
    id            TEXT PRIMARY KEY,
    credential_id TEXT NOT NULL UNIQUE,                      -- the authenticator's id of it, base64url
    person_id     TEXT NOT NULL REFERENCES account (person_id) ON DELETE CASCADE,
    site          TEXT NOT NULL,                             -- the host it was made for
    public_key    TEXT NOT NULL,                             -- base64url
    sign_count    BIGINT NOT NULL,
    name          TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT
);
CREATE INDEX passkey_person ON passkey (person_id, created_at);

-- A challenge that an authenticator was asked to sign. Stored, because any process may receive the answer.
CREATE TABLE passkey_challenge (
    digest      TEXT PRIMARY KEY,
    person_id   TEXT REFERENCES account (person_id) ON DELETE CASCADE,   -- NULL: to sign in; else to add a passkey
    expires_at  BIGINT NOT NULL
);

-- A browser in which a person has signed in before: strangers' guesses do not lock it out.
CREATE TABLE known_device (
    digest       TEXT NOT NULL,                              -- of its cookie
    person_id    TEXT NOT NULL REFERENCES account (person_id) ON DELETE CASCADE,
    signed_in_at BIGINT NOT NULL,                            -- the last time
    PRIMARY KEY (digest, person_id)
);
CREATE INDEX known_device_person ON known_device (person_id, signed_in_at);

-- Rate limits of attempts to sign in and to use codes. Stored, so that a restart or another process does not reset them.
CREATE TABLE sign_in_attempt (
    subject     TEXT PRIMARY KEY,                            -- what is limited: a name, a network address, a device, an account
    busy_until  BIGINT NOT NULL                              -- each attempt moves it on; too far ahead is too often
);
CREATE INDEX sign_in_attempt_busy ON sign_in_attempt (busy_until);

-- ---- sessions --------------------------------------------------------------------------------------------

-- A person's folder of sessions.
CREATE TABLE project (
    no          @SERIAL_KEY@,
    id          TEXT NOT NULL UNIQUE,
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    name_key    TEXT NOT NULL,                               -- the name, case folded
    color       TEXT,
    created_at  BIGINT NOT NULL,
    UNIQUE (person_id, name_key)
);

-- One conversation, with the counters that lists show. Always true: `message_count`, `preview` and `last_message_at` match
-- the session's visible messages; `tool_call_count`, tokens and cost count what was done, also if it was undone since.
CREATE TABLE session (
    no                  @SERIAL_KEY_NEVER_REUSED@,
    id                  TEXT NOT NULL UNIQUE,
    key                 TEXT @BYTE_ORDER@ NOT NULL,          -- of the lane it began in
    platform            TEXT NOT NULL,
    chat_type           TEXT NOT NULL,
    source              TEXT NOT NULL,                       -- JSON
    audience_no         BIGINT NOT NULL REFERENCES audience (no),
    shared              SMALLINT NOT NULL CHECK (shared IN (0, 1)),
    has_shared_content  SMALLINT NOT NULL DEFAULT 0,         -- copied from a shared session, directly or through other copies
    title               TEXT,                                -- chosen by a person
    title_base          TEXT,                                -- case folded, without its number
    title_number        BIGINT,
    auto_title          TEXT,                                -- the first words, later a model's title; not unique
    auto_title_asked    SMALLINT NOT NULL DEFAULT 0,         -- a model was asked for it; never asked twice
    preview             TEXT NOT NULL DEFAULT '',
    project_no          BIGINT REFERENCES project (no) ON DELETE SET NULL,
    parent_no           BIGINT REFERENCES session (no) ON DELETE SET NULL,   -- the session it was forked from
    created_at          BIGINT NOT NULL,
    active_at           BIGINT,                              -- orders lists; NULL until the first message
    last_message_at     BIGINT,
    last_human_at       BIGINT,                              -- the reset policy counts from here
    ended_at            BIGINT,
    end_reason          TEXT,
    start_reason        TEXT NOT NULL,
    previous_had_messages SMALLINT NOT NULL DEFAULT 0,       -- the session before it in its lane had messages
    is_first_contact    SMALLINT NOT NULL DEFAULT 0,         -- its audience had no session with messages before it
    pinned_at           BIGINT,
    archived_at         BIGINT,
    last_seq            BIGINT NOT NULL DEFAULT 0,           -- of the last event
    redo_seq            BIGINT,                              -- the undo that a redo would revert
    compaction_seq      BIGINT,                              -- the compaction in effect
    indexed_seq         BIGINT NOT NULL DEFAULT 0,           -- the search index holds everything up to here
    unindexed           SMALLINT NOT NULL DEFAULT 0 CHECK (unindexed IN (0, 1)),   -- there are messages after it
    message_count       BIGINT NOT NULL DEFAULT 0,           -- visible messages
    tool_call_count     BIGINT NOT NULL DEFAULT 0,           -- tool calls that the agent has made in this session
    chosen_model        TEXT,                                -- for this session only; NULL: the profile's or gateway's
    profile             TEXT,                                -- name in config.yaml; NULL: the default
    personality         TEXT,                                -- name in config.yaml; NULL: none
    workspace           TEXT,                                -- a folder or label that the agent is told; NULL: none
    busy_policy         TEXT,                                -- for this session only; NULL: the gateway's policy
    disabled_toolsets   TEXT,                                -- JSON list of names; NULL: none
    model               TEXT,
    provider            TEXT,
    last_prompt_tokens  BIGINT NOT NULL DEFAULT 0,
    input_tokens        BIGINT NOT NULL DEFAULT 0,
    output_tokens       BIGINT NOT NULL DEFAULT 0,
    cache_read_tokens   BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens  BIGINT NOT NULL DEFAULT 0,
    reasoning_tokens    BIGINT NOT NULL DEFAULT 0,
    cost_nanos          BIGINT,                              -- NULL: unknown, which is not zero
    cost_status         TEXT NOT NULL DEFAULT 'unknown' CHECK (cost_status IN ('unknown', 'estimated', 'actual')),
    cost_source         TEXT,
    unpriced_turns      BIGINT NOT NULL DEFAULT 0,
    CHECK (message_count >= 0),
    CHECK ((title IS NULL) = (title_base IS NULL)),
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
) @ROOM_FOR_UPDATES@;
CREATE INDEX session_audience_id ON session (audience_no, id);
CREATE INDEX session_key ON session (key);                   -- a chat that moves takes its sessions along
-- `platform` is in the indexes of lists so that a list of one platform skips the others without reading their rows.
CREATE INDEX session_active ON session (active_at, no, platform) WHERE active_at IS NOT NULL AND archived_at IS NULL;
CREATE INDEX session_audience_active ON session (audience_no, active_at, no, platform) WHERE active_at IS NOT NULL AND archived_at IS NULL;
CREATE INDEX session_archived ON session (active_at, no, platform) WHERE active_at IS NOT NULL AND archived_at IS NOT NULL;
CREATE INDEX session_audience_archived ON session (audience_no, active_at, no, platform) WHERE active_at IS NOT NULL AND archived_at IS NOT NULL;
CREATE INDEX session_audience_pinned ON session (audience_no, active_at, no, platform) WHERE pinned_at IS NOT NULL;
CREATE INDEX session_project ON session (project_no, active_at, no) WHERE project_no IS NOT NULL;
CREATE INDEX session_parent ON session (parent_no) WHERE parent_no IS NOT NULL;
CREATE UNIQUE INDEX one_title_per_audience ON session (audience_no, title_base, title_number) WHERE title IS NOT NULL;
CREATE INDEX session_unindexed ON session (no) WHERE unindexed = 1;

-- The place that a session key addresses, and the session it is on now.
CREATE TABLE lane (
    key         TEXT @BYTE_ORDER@ PRIMARY KEY,
    session_no  BIGINT REFERENCES session (no) ON DELETE SET NULL,
    source      TEXT NOT NULL,                               -- JSON: the place itself, whichever session it is on
    audience_no BIGINT NOT NULL REFERENCES audience (no),
    shared      SMALLINT NOT NULL CHECK (shared IN (0, 1)),
    updated_at  BIGINT NOT NULL,
    group_message_no BIGINT NOT NULL DEFAULT 0               -- the last `group_message` of its chat that it has seen
) @CLUSTERED@;
CREATE INDEX lane_session ON lane (session_no);
CREATE INDEX lane_audience ON lane (audience_no);

-- Every move of a lane from one session to another, so that `restore` can undo them one after the other.
CREATE TABLE lane_move (
    no              @SERIAL_KEY@,
    lane_key        TEXT @BYTE_ORDER@ NOT NULL REFERENCES lane (key) ON DELETE CASCADE,
    from_session_no BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    to_session_no   BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    reason          TEXT NOT NULL,
    moved_at        BIGINT NOT NULL,
    undone_at       BIGINT
);
CREATE INDEX lane_move_lane ON lane_move (lane_key, no);
CREATE INDEX lane_move_from ON lane_move (from_session_no);
CREATE INDEX lane_move_to ON lane_move (to_session_no);

-- The append-only log of each session. Always true: only `hidden_by` and `edited_by` ever change.
CREATE TABLE event (
    no                  @SERIAL_KEY@,
    session_no          BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    seq                 BIGINT NOT NULL,                     -- 1, 2, 3 … within the session
    kind                TEXT NOT NULL,
    created_at          BIGINT NOT NULL,
    role                TEXT,
    content             TEXT,                                -- the text of a message, or the text that an edit gives it
    body                TEXT,                                -- JSON: everything else that the event carries
    person_id           TEXT,
    platform_message_id TEXT,
    hidden_by           BIGINT,                              -- seq of the undo, rewrite or deletion that hid this message
    edited_by           BIGINT                               -- seq of the edit whose text this message has now
);
CREATE UNIQUE INDEX event_seq ON event (session_no, seq);
CREATE INDEX event_reaction ON event (session_no, seq) WHERE kind = 'reaction';

-- How far each person has read in a session.
CREATE TABLE read_mark (
    session_no  BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    read_seq    BIGINT NOT NULL,                             -- the last event they have read
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (session_no, person_id)
) @CLUSTERED@;
CREATE INDEX read_mark_person ON read_mark (person_id);

-- Sessions that were deleted, so that pages which show them are told. The newest 1000 are kept.
CREATE TABLE deleted_session (
    no          @SERIAL_KEY_NEVER_REUSED@,
    session_id  TEXT NOT NULL,
    audience_no BIGINT NOT NULL
);

-- A file that a person has sent. Its bytes are in the attachments folder, under their SHA-256.
CREATE TABLE attachment (
    no          @SERIAL_KEY_NEVER_REUSED@,
    id          TEXT NOT NULL UNIQUE,
    person_id   TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,   -- who sent it
    name        TEXT NOT NULL,                               -- for people to read; never a path
    media_type  TEXT NOT NULL,                               -- as its bytes say, whatever the sender claims
    size        BIGINT NOT NULL CHECK (size >= 0),
    sha256      TEXT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX attachment_sha256 ON attachment (sha256);
CREATE INDEX attachment_person ON attachment (person_id);
CREATE INDEX attachment_created ON attachment (created_at);

-- The sessions that use a file: a person who may see one of them may see the file.
CREATE TABLE attachment_use (
    session_no    BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    attachment_no BIGINT NOT NULL REFERENCES attachment (no) ON DELETE CASCADE,
    PRIMARY KEY (session_no, attachment_no)
) @CLUSTERED@;
CREATE INDEX attachment_use_attachment ON attachment_use (attachment_no);

-- A read-only copy of a session for anybody who has its secret. It is deleted with its session.
CREATE TABLE share (
    no            @SERIAL_KEY_NEVER_REUSED@,
    id            TEXT NOT NULL UNIQUE,
    secret        TEXT NOT NULL UNIQUE,                      -- opens only this row, which has the copy itself
    person_id     TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,   -- who made it
    session_no    BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    title         TEXT,                                      -- of the copy
    body          TEXT NOT NULL,                             -- JSON: the copy, never changed
    message_count BIGINT NOT NULL,
    created_at    BIGINT NOT NULL
);
CREATE INDEX share_person ON share (person_id, no);
CREATE INDEX share_session ON share (session_no);

-- What the agent was asked to remember. Every member of the audience may read it.
CREATE TABLE memory (
    no          @SERIAL_KEY_NEVER_REUSED@,
    id          TEXT NOT NULL UNIQUE,
    audience_no BIGINT NOT NULL REFERENCES audience (no) ON DELETE CASCADE,
    person_id   TEXT,                                        -- who asked for it
    text        TEXT NOT NULL,
    text_key    TEXT NOT NULL,                               -- case folded, single spaces: no audience has a text twice
    created_at  BIGINT NOT NULL,
    UNIQUE (audience_no, text_key)
);

-- ---- turns and deliveries --------------------------------------------------------------------------------

-- A message that a platform has delivered to us, so that the same message twice is one message.
CREATE TABLE inbound_message (
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,
    chat        TEXT NOT NULL,
    sender      TEXT NOT NULL,                               -- who chose the id; empty if the platform did
    message_id  TEXT NOT NULL,
    receipt     TEXT NOT NULL,                               -- JSON: what was answered the first time
    received_at BIGINT NOT NULL,
    PRIMARY KEY (platform, account, chat, sender, message_id)
) @CLUSTERED@;
CREATE INDEX inbound_message_received ON inbound_message (received_at);  -- old ones are deleted

-- Our accounts on platforms: which process runs each, and how it is doing.
CREATE TABLE platform_account (
    platform         TEXT NOT NULL,
    account          TEXT NOT NULL,                          -- its name in config.yaml; empty for the only one
    state            TEXT NOT NULL CHECK (state IN ('off', 'connecting', 'linking', 'live', 'deaf', 'refused')),
    state_since      BIGINT NOT NULL,
    name             TEXT,                                   -- as people see it on the platform
    user_id          TEXT,                                   -- its own id on the platform
    warnings         TEXT,                                   -- JSON list: what is missing, in words
    details          TEXT,                                   -- JSON list: versions and the like, in words
    linking          TEXT,                                   -- JSON: what to scan or type on a phone to link it
    error            TEXT,                                   -- the last one, in words
    error_at         BIGINT,
    last_message_at  BIGINT,
    test_no          BIGINT NOT NULL DEFAULT 0,              -- counts the requests to test its connection
    last_test        TEXT,                                   -- JSON: how the latest of them has ended
    lease_owner      TEXT,                                   -- the process that runs it
    lease_until      BIGINT,
    lease_no         BIGINT NOT NULL DEFAULT 0,              -- counts owners: what an earlier one writes is refused
    PRIMARY KEY (platform, account)
);

-- How far each account has read on its platform.
CREATE TABLE platform_cursor (
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,
    name        TEXT NOT NULL,
    value       TEXT NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (platform, account, name)
);

-- Messages in groups that were not addressed to the agent. The next addressed one carries the newest of them into its session.
CREATE TABLE group_message (
    no          @SERIAL_KEY_NEVER_REUSED@,
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    thread_id   TEXT NOT NULL,                               -- empty: none
    message_id  TEXT,
    sender      TEXT,                                        -- the author's account, as in `identity`; NULL: unknown
    author      TEXT NOT NULL,                               -- for people to read
    content     TEXT NOT NULL,
    sent_at     BIGINT NOT NULL
);
CREATE INDEX group_message_chat ON group_message (platform, account, chat_id, thread_id, no);
CREATE UNIQUE INDEX group_message_id ON group_message (platform, account, chat_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX group_message_sent ON group_message (sent_at);

-- The default chat of a platform, chosen with /sethome. It wins over config.yaml.
CREATE TABLE home_channel (
    platform    TEXT PRIMARY KEY,
    source      TEXT NOT NULL,                               -- JSON: the chat, and who chose it
    set_by      TEXT,                                        -- person
    set_at      BIGINT NOT NULL
);

-- One run of the agent for one accepted input. Always true: at most one turn of a session runs at a time.
CREATE TABLE turn (
    no               @SERIAL_KEY_NEVER_REUSED@,
    id               TEXT NOT NULL UNIQUE,
    session_no       BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    kind             TEXT NOT NULL CHECK (kind IN ('answer', 'compact')),
    input_seq        BIGINT NOT NULL,                        -- the message it answers, the last of several
    person_id        TEXT,                                   -- on whose behalf it runs
    address          TEXT,                                   -- where the answer is delivered; NULL: it is read here only
    reply_to         TEXT,                                   -- the platform's id of the message it answers
    facts            TEXT,                                   -- JSON: what else the run must know
    state            TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'interrupted')),
    queue_round      BIGINT NOT NULL,                        -- one turn of each session before a second of any
    due_at           BIGINT NOT NULL,                        -- it does not start before this
    is_steering      SMALLINT NOT NULL DEFAULT 0,            -- may be given to the run before it
    attempt          BIGINT NOT NULL DEFAULT 0,
    lease_owner      TEXT,
    lease_until      BIGINT,
    has_side_effects SMALLINT NOT NULL DEFAULT 0,            -- a tool whose work cannot be repeated has started
    stop_request     TEXT CHECK (stop_request IN ('stop', 'interrupt')),
    stopped_by       TEXT,                                   -- the person who asked to stop it
    created_at       BIGINT NOT NULL,
    started_at       BIGINT,
    ended_at         BIGINT,
    error            TEXT,
    CHECK ((state = 'running') = (lease_owner IS NOT NULL)),
    CHECK ((state IN ('queued', 'running')) = (ended_at IS NULL))
) @ROOM_FOR_UPDATES@;
CREATE UNIQUE INDEX one_running_turn ON turn (session_no) WHERE state = 'running';
CREATE INDEX turn_session ON turn (session_no, no);
CREATE INDEX turn_open ON turn (session_no, no) WHERE state IN ('queued', 'running');
CREATE INDEX turn_queued ON turn (queue_round, no) WHERE state = 'queued';
CREATE INDEX turn_due ON turn (due_at) WHERE state = 'queued' AND due_at > 0;   -- waits for its time, not only for a worker
CREATE INDEX turn_ended ON turn (ended_at) WHERE ended_at IS NOT NULL;

-- What the agent has said so far in a running turn. Deleted when the turn ends.
CREATE TABLE draft (
    no          @SERIAL_KEY_NEVER_REUSED@,
    turn_no     BIGINT NOT NULL REFERENCES turn (no) ON DELETE CASCADE,
    session_no  BIGINT NOT NULL,
    attempt     BIGINT NOT NULL,
    body        TEXT NOT NULL                                -- JSON: pieces
);
CREATE INDEX draft_turn ON draft (turn_no, no);

-- One thing to send to one address. Always true: only the first open delivery at an address is due.
CREATE TABLE delivery (
    no              @SERIAL_KEY_NEVER_REUSED@,
    id              TEXT NOT NULL UNIQUE,
    kind            TEXT NOT NULL CHECK (kind IN ('answer', 'notice')),
    session_no      BIGINT REFERENCES session (no) ON DELETE CASCADE,
    turn_no         BIGINT REFERENCES turn (no) ON DELETE CASCADE,
    platform        TEXT NOT NULL,                           -- of the address: only processes connected to it can send
    account         TEXT NOT NULL,                           -- of the address, too
    address         TEXT @BYTE_ORDER@ NOT NULL,
    reply_to        TEXT,
    content         TEXT NOT NULL,
    attachment_ids  TEXT,                                    -- JSON list: the files that are sent with it
    buttons         TEXT,                                    -- JSON list of label and data, for platforms that have buttons
    state           TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'uncertain', 'failed')),
    attempts        BIGINT NOT NULL DEFAULT 0,               -- since the last message of it has arrived
    due_at          BIGINT,                                  -- NULL while another delivery is before it
    lease_owner     TEXT,
    lease_until     BIGINT,
    error           TEXT,
    created_at      BIGINT NOT NULL,
    ended_at        BIGINT,
    CHECK ((state = 'sending') = (lease_owner IS NOT NULL))
) @ROOM_FOR_UPDATES@;
CREATE UNIQUE INDEX one_answer_per_address ON delivery (turn_no, address) WHERE turn_no IS NOT NULL;
CREATE INDEX delivery_session ON delivery (session_no, no);
CREATE INDEX delivery_open ON delivery (address, no) WHERE state IN ('pending', 'sending');
CREATE INDEX delivery_due ON delivery (platform, account, due_at) WHERE state = 'pending' AND due_at IS NOT NULL;
CREATE INDEX delivery_sending ON delivery (no) WHERE state = 'sending';
CREATE INDEX delivery_ended ON delivery (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX delivery_problem ON delivery (ended_at) WHERE state IN ('uncertain', 'failed');

-- The messages that a delivery becomes on its platform. They are sent in order, and never silently twice.
CREATE TABLE delivery_part (
    delivery_no     BIGINT NOT NULL REFERENCES delivery (no) ON DELETE CASCADE,
    part_no         BIGINT NOT NULL,                         -- 1, 2, 3 …
    body            TEXT NOT NULL,                           -- as the adapter has rendered it
    attachment_no   BIGINT REFERENCES attachment (no) ON DELETE SET NULL,   -- the file to send
    edits_id        TEXT,                                    -- the platform's id of the preview that it replaces
    state           TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'uncertain', 'failed')),
    first_sent_at   BIGINT,                                  -- of the first attempt that may have arrived
    sent_message_id TEXT,                                    -- the platform's id of the sent message
    error           TEXT,
    PRIMARY KEY (delivery_no, part_no)
) @CLUSTERED@;
CREATE INDEX delivery_part_sent ON delivery_part (sent_message_id) WHERE sent_message_id IS NOT NULL;
CREATE INDEX delivery_part_attachment ON delivery_part (attachment_no) WHERE attachment_no IS NOT NULL;

-- The growing message of an answer that is being written. Its delivery takes it over, or it is deleted on the platform.
CREATE TABLE preview (
    no          @SERIAL_KEY_NEVER_REUSED@,
    turn_no     BIGINT UNIQUE REFERENCES turn (no) ON DELETE SET NULL,
    key         TEXT NOT NULL,                               -- it is sent with
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,
    address     TEXT NOT NULL,
    message_id  TEXT,                                        -- NULL: being sent; it is unknown whether it has arrived
    created_at  BIGINT NOT NULL
);
CREATE INDEX preview_account ON preview (platform, account);

-- Addresses that cannot be reached, until a message arrives from there again.
CREATE TABLE dead_target (
    address     TEXT @BYTE_ORDER@ PRIMARY KEY,
    reason      TEXT NOT NULL,
    marked_at   BIGINT NOT NULL
);

-- What each turn used of each model. Rows survive the deletion of their session, because the money is spent; so
-- `platform` and `audience_no` are copied from the session, and reports do not need it.
CREATE TABLE usage (
    session_no          BIGINT NOT NULL,
    turn_id             TEXT NOT NULL,
    model               TEXT NOT NULL,
    provider            TEXT,
    created_at          BIGINT NOT NULL,
    input_tokens        BIGINT NOT NULL,
    output_tokens       BIGINT NOT NULL,
    cache_read_tokens   BIGINT NOT NULL,
    cache_write_tokens  BIGINT NOT NULL,
    reasoning_tokens    BIGINT NOT NULL,
    cost_nanos          BIGINT,
    cost_status         TEXT NOT NULL CHECK (cost_status IN ('unknown', 'estimated', 'actual')),
    cost_source         TEXT,
    platform            TEXT,
    audience_no         BIGINT,
    PRIMARY KEY (session_no, turn_id, model)
) @CLUSTERED@;
CREATE INDEX usage_created ON usage (created_at);
CREATE INDEX usage_audience ON usage (audience_no, created_at);
