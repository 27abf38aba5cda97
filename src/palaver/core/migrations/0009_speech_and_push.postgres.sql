-- Speech engines are called like models, and notifications reach browsers while the page is closed.

ALTER TABLE model_call DROP CONSTRAINT model_call_purpose_check;
ALTER TABLE model_call ADD CONSTRAINT model_call_purpose_check
    CHECK (purpose IN ('answer', 'summary', 'title', 'memory', 'speech'));

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
