-- How people sign in. No secret is here: random ones are kept as SHA-256, passwords as Argon2id.
-- Times are microseconds since 1970, UTC.

-- Whoever may sign in. Everything they sign in with hangs on this row and goes with it.
CREATE TABLE account (
    person_id   TEXT PRIMARY KEY REFERENCES person (id) ON DELETE CASCADE,
    name_key    TEXT NOT NULL UNIQUE,                        -- the person's name, folded: nobody else signs in by it
    password    TEXT,                                        -- Argon2id; NULL: they sign in otherwise
    created_at  BIGINT NOT NULL
);

-- A link that signs somebody in once.
CREATE TABLE sign_in_link (
    digest      TEXT PRIMARY KEY,
    person_id   TEXT NOT NULL REFERENCES account (person_id) ON DELETE CASCADE,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX sign_in_link_person ON sign_in_link (person_id);

-- A browser in which somebody is signed in.
CREATE TABLE sign_in (
    id          TEXT PRIMARY KEY,
    digest      TEXT NOT NULL UNIQUE,
    person_id   TEXT NOT NULL REFERENCES account (person_id) ON DELETE CASCADE,
    way         TEXT NOT NULL CHECK (way IN ('link', 'password', 'passkey')),
    device      TEXT NOT NULL,
    address     TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    seen_at     BIGINT NOT NULL
);
CREATE INDEX sign_in_person ON sign_in (person_id, created_at);

-- What a program signs in with.
CREATE TABLE api_token (
    id          TEXT PRIMARY KEY,
    digest      TEXT NOT NULL UNIQUE,
    person_id   TEXT NOT NULL REFERENCES account (person_id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    scopes      TEXT NOT NULL,                               -- with spaces between them
    created_at  BIGINT NOT NULL,
    used_at     BIGINT,
    expires_at  BIGINT
);
CREATE INDEX api_token_person ON api_token (person_id, created_at);

-- The public half of a WebAuthn credential.
CREATE TABLE passkey (
    id          TEXT PRIMARY KEY,
    credential  TEXT NOT NULL UNIQUE,                        -- the authenticator's id of it, base64url
    person_id   TEXT NOT NULL REFERENCES account (person_id) ON DELETE CASCADE,
    site        TEXT NOT NULL,                               -- the host it was made for
    public_key  TEXT NOT NULL,                               -- base64url
    sign_count  BIGINT NOT NULL,
    name        TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    used_at     BIGINT
);
CREATE INDEX passkey_person ON passkey (person_id, created_at);

-- What an authenticator was asked to sign, until it has or time is up. Any process may hear the answer.
CREATE TABLE passkey_challenge (
    digest      TEXT PRIMARY KEY,
    person_id   TEXT REFERENCES account (person_id) ON DELETE CASCADE,   -- NULL: somebody wants to sign in
    expires_at  BIGINT NOT NULL
);

-- Who has tried too often to sign in. Kept here, so that neither a restart nor another process starts afresh.
CREATE TABLE attempt (
    subject     TEXT PRIMARY KEY,
    busy_until  BIGINT NOT NULL                              -- each attempt moves it on; too far ahead is too often
);
CREATE INDEX attempt_over ON attempt (busy_until);

CREATE INDEX person_created ON person (created_at, id);
