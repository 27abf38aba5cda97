-- From a message to an answer: what came in, the turns, growing answers, and what is on its way to people.
-- Times are microseconds since 1970, UTC. Flags are 0 or 1.

DROP TABLE delivery;
DROP TABLE turn;

ALTER TABLE session ADD COLUMN chosen_model TEXT;                -- for this conversation alone
ALTER TABLE session ADD COLUMN busy_policy TEXT;                 -- the same
ALTER TABLE session ADD COLUMN compaction_seq BIGINT;            -- the compaction that holds, if any

-- One run of the agent for one accepted input.
CREATE TABLE turn (
    no          @SERIAL_FOREVER@,
    id          TEXT NOT NULL UNIQUE,
    session_no  BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    kind        TEXT NOT NULL CHECK (kind IN ('answer', 'compact')),
    input_seq   BIGINT NOT NULL,                             -- the message it answers, the last of several
    person_id   TEXT,                                        -- on whose behalf
    address     TEXT,                                        -- where the answer goes; NULL: it is read in the conversation
    reply_to    TEXT,                                        -- the platform's id of the message it answers
    facts       TEXT,                                        -- JSON: what else the run must know
    state       TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'interrupted')),
    round       BIGINT NOT NULL,                             -- sessions take turns: one of each before a second of any
    due_at      BIGINT NOT NULL,                             -- not before
    steers      SMALLINT NOT NULL DEFAULT 0,                 -- may be given to the run before it
    attempt     BIGINT NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_until BIGINT,
    acted       SMALLINT NOT NULL DEFAULT 0,                 -- a tool whose work cannot be repeated has begun
    wish        TEXT CHECK (wish IN ('stop', 'interrupt')),  -- what somebody wants of the run
    created_at  BIGINT NOT NULL,
    started_at  BIGINT,
    ended_at    BIGINT,
    error       TEXT,
    CHECK ((state = 'running') = (lease_owner IS NOT NULL)),
    CHECK ((state IN ('queued', 'running')) = (ended_at IS NULL))
) @ROOMY@;
CREATE UNIQUE INDEX one_running_turn ON turn (session_no) WHERE state = 'running';
CREATE INDEX turn_session ON turn (session_no, no);
CREATE INDEX turn_open ON turn (session_no, no) WHERE state IN ('queued', 'running');
CREATE INDEX turn_queued ON turn (round, no) WHERE state = 'queued';

-- What the agent has said so far in a running turn, as it grows. Gone when the turn ends.
CREATE TABLE draft (
    no          @SERIAL_FOREVER@,
    turn_no     BIGINT NOT NULL REFERENCES turn (no) ON DELETE CASCADE,
    session_no  BIGINT NOT NULL,
    attempt     BIGINT NOT NULL,
    body        TEXT NOT NULL                                -- JSON: pieces
);
CREATE INDEX draft_turn ON draft (turn_no, no);

-- What platforms have brought, so that the same message twice is one message.
CREATE TABLE inbound (
    platform    TEXT NOT NULL,
    account     TEXT NOT NULL,
    chat        TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    receipt     TEXT NOT NULL,                               -- JSON: what was answered the first time
    at          BIGINT NOT NULL,
    PRIMARY KEY (platform, account, chat, message_id)
) @CLUSTERED@;

-- One thing on its way to one address. The first that is open at an address is due; those behind it wait.
CREATE TABLE delivery (
    no          @SERIAL_FOREVER@,
    id          TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL CHECK (kind IN ('answer', 'notice')),
    session_no  BIGINT REFERENCES session (no) ON DELETE CASCADE,
    turn_no     BIGINT REFERENCES turn (no) ON DELETE CASCADE,
    platform    TEXT NOT NULL,                               -- of the address: who can send it
    address     TEXT NOT NULL,
    reply_to    TEXT,
    content     TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'uncertain', 'failed')),
    attempts    BIGINT NOT NULL DEFAULT 0,
    due_at      BIGINT,                                      -- NULL while another is before it
    lease_owner TEXT,
    lease_until BIGINT,
    receipt     TEXT,                                        -- the platform's id of what was sent
    error       TEXT,
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    CHECK ((state = 'sending') = (lease_owner IS NOT NULL))
) @ROOMY@;
CREATE UNIQUE INDEX one_answer_per_address ON delivery (turn_no, address) WHERE kind = 'answer';
CREATE INDEX delivery_session ON delivery (session_no, no);
CREATE INDEX delivery_open ON delivery (address, no) WHERE state IN ('pending', 'sending');
CREATE INDEX delivery_due ON delivery (platform, due_at) WHERE state = 'pending' AND due_at IS NOT NULL;
CREATE INDEX delivery_sending ON delivery (no) WHERE state = 'sending';

-- Addresses at which nobody is any more, until somebody speaks from there again.
CREATE TABLE dead_target (
    address     TEXT PRIMARY KEY,
    reason      TEXT NOT NULL,
    at          BIGINT NOT NULL
);

-- What the agent was asked to remember; it belongs to those who may see the conversation it was said in.
CREATE TABLE memory (
    no          @SERIAL_FOREVER@,
    id          TEXT NOT NULL UNIQUE,
    audience_no BIGINT NOT NULL REFERENCES audience (no) ON DELETE CASCADE,
    person_id   TEXT,                                        -- who asked for it
    text        TEXT NOT NULL,
    text_key    TEXT NOT NULL,                               -- case folded, single spaces: the same thing twice is one
    created_at  BIGINT NOT NULL,
    UNIQUE (audience_no, text_key)
);
