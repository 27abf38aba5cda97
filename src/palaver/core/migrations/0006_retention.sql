-- Erasing people, and finding what is past its time.

-- A person who is being erased, step by step, and afterwards the record of how much was erased. Any process goes on with
-- an erasure that has not ended.
CREATE TABLE erasure (
    no          @SERIAL_KEY_NEVER_REUSED@,
    id          TEXT NOT NULL UNIQUE,
    person_id   TEXT UNIQUE,                                 -- NULL once it has ended
    facts       TEXT,                                        -- JSON: ids and names by which the rest is found; NULL once it has ended
    step        TEXT NOT NULL,                               -- what is being erased now
    position    BIGINT NOT NULL DEFAULT 0,                   -- how far the step has come
    session_no  BIGINT,                                      -- the shared conversation that is being worked on
    session_seq BIGINT NOT NULL DEFAULT 0,                   -- how far
    counts      TEXT NOT NULL,                               -- JSON: how many of each kind were erased
    started_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    CHECK ((ended_at IS NULL) = (person_id IS NOT NULL)),
    CHECK ((ended_at IS NULL) = (facts IS NOT NULL))
);
CREATE INDEX erasure_open ON erasure (no) WHERE ended_at IS NULL;
CREATE INDEX erasure_ended ON erasure (ended_at) WHERE ended_at IS NOT NULL;

-- Messages that were sent outside of conversations, such as notices: found by address when a person is erased, and by
-- time when they are old.
CREATE INDEX delivery_without_session ON delivery (address) WHERE session_no IS NULL;
CREATE INDEX delivery_without_session_ended ON delivery (ended_at) WHERE session_no IS NULL AND ended_at IS NOT NULL;
-- Finds the moves of lanes that nothing can undo any more.
CREATE INDEX lane_move_undone ON lane_move (undone_at) WHERE undone_at IS NOT NULL;
