-- Speech engines are called like models, and notifications reach browsers while the page is closed.

ALTER TABLE model_call RENAME TO model_call_before_speech;
DROP INDEX model_call_owner;
DROP INDEX model_call_turn;
CREATE TABLE model_call (
    no            @SERIAL_KEY_NEVER_REUSED@,
    id            TEXT NOT NULL UNIQUE,
    owner         TEXT NOT NULL,                             -- the process
    purpose       TEXT NOT NULL CHECK (purpose IN ('answer', 'summary', 'title', 'memory', 'speech')),
    turn_id       TEXT,
    attempt       BIGINT NOT NULL,                           -- of the turn; 0 without one
    session_no    BIGINT NOT NULL,
    platform      TEXT NOT NULL,
    audience_no   BIGINT NOT NULL,
    model         TEXT NOT NULL,
    provider      TEXT,
    windows       TEXT NOT NULL,                             -- JSON: the budget windows in which it is held
    held_nanos    BIGINT,                                    -- NULL: the price is unknown
    held_tokens   BIGINT NOT NULL,
    input_tokens  BIGINT NOT NULL,                           -- of the held tokens, those of the prompt
    usage         TEXT,                                      -- JSON: what it has really used; NULL: not known yet
    created_at    BIGINT NOT NULL
);

INSERT INTO model_call (no, id, owner, purpose, turn_id, attempt, session_no, platform, audience_no, model, provider, windows, held_nanos, held_tokens,
    input_tokens, usage, created_at)
    SELECT no, id, owner, purpose, turn_id, attempt, session_no, platform, audience_no, model, provider, windows, held_nanos, held_tokens,
    input_tokens, usage, created_at FROM model_call_before_speech;
DROP TABLE model_call_before_speech;
CREATE INDEX model_call_owner ON model_call (owner);
CREATE INDEX model_call_turn ON model_call (turn_id) WHERE turn_id IS NOT NULL;

-- A browser that shows notifications while the page is closed. It ends with its sign-in.
CREATE TABLE push_subscription (
    id          TEXT PRIMARY KEY,
    sign_in_id  TEXT NOT NULL UNIQUE REFERENCES sign_in (id) ON DELETE CASCADE,
    endpoint    TEXT NOT NULL UNIQUE,                        -- the address at the browser's push service
    public_key  TEXT NOT NULL,                               -- of the browser, base64url: what is sent is encrypted with it
    auth_secret TEXT NOT NULL,                               -- of the browser, base64url
    server_key  TEXT NOT NULL,                               -- our public key, base64url: only its private half can send here
    created_at  BIGINT NOT NULL
);

-- A notification on its way to a browser. A newer answer in the same conversation replaces it.
CREATE TABLE push_message (
    no              @SERIAL_KEY_NEVER_REUSED@,
    subscription_id TEXT NOT NULL REFERENCES push_subscription (id) ON DELETE CASCADE,
    session_no      BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    seq             BIGINT NOT NULL,                         -- the end of the answer: who has read that far is not notified
    attempts        BIGINT NOT NULL DEFAULT 0,
    due_at          BIGINT NOT NULL,                         -- while a process sends it: when another may take it over
    created_at      BIGINT NOT NULL,
    UNIQUE (subscription_id, session_no)
);
CREATE INDEX push_message_due ON push_message (due_at);
CREATE INDEX push_message_session ON push_message (session_no);
