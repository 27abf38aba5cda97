-- Jobs and their runs, what the agent learns from conversations, and limits on tokens and money.

ALTER TABLE person ADD COLUMN timezone TEXT;                 -- an IANA name; NULL: the gateway's

-- What only one process may do at a time, such as looking for conversations to end.
CREATE TABLE named_lease (
    name        TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    until       BIGINT NOT NULL
);

-- ---- jobs ------------------------------------------------------------------------------------------------

-- A prompt that runs on a schedule. Always true: a person has one job of a name; only an active job has a next slot.
CREATE TABLE job (
    no              @SERIAL_KEY_NEVER_REUSED@,
    id              TEXT NOT NULL UNIQUE,
    person_id       TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,   -- on whose behalf it runs
    name            TEXT NOT NULL,
    name_key        TEXT NOT NULL,                           -- the name, case folded
    prompt          TEXT NOT NULL,
    schedule        TEXT NOT NULL,                           -- as `domain/schedule.py` writes it
    timezone        TEXT NOT NULL,                           -- an IANA name: the wall clock of the schedule
    anchor          BIGINT NOT NULL,                         -- intervals count from here
    runs_left       BIGINT,                                  -- scheduled runs; NULL: without end
    targets         TEXT NOT NULL,                           -- JSON list, as `domain/targets.py` writes them
    origin          TEXT NOT NULL,                           -- JSON: the source where it was made; the target `origin`
    origin_session_no BIGINT,                                -- the conversation in which it was made; it may be deleted
    toolsets        TEXT NOT NULL,                           -- JSON list: the toolsets that its runs may use
    model           TEXT,                                    -- NULL: the gateway's
    profile         TEXT,                                    -- name in config.yaml; NULL: the default
    state           TEXT NOT NULL CHECK (state IN ('proposed', 'active', 'paused', 'ended')),
    state_reason    TEXT,                                    -- why it is paused or has ended, in words
    proposed_change TEXT,                                    -- JSON: fields that the agent wants to change; a person confirms
    proposed_at     BIGINT,                                  -- since when its person is asked to confirm it or its change
    proposed_session_no BIGINT REFERENCES session (no) ON DELETE SET NULL,    -- the conversation in which they are asked
    next_slot       BIGINT,                                  -- the time of its next scheduled run
    failure_count   BIGINT NOT NULL DEFAULT 0,               -- runs that failed in a row
    alerted_cause   TEXT,                                    -- of the failure that its person was last told of
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    UNIQUE (person_id, name_key),
    CHECK ((state = 'active') = (next_slot IS NOT NULL))
);
CREATE INDEX job_due ON job (next_slot) WHERE next_slot IS NOT NULL;
CREATE INDEX job_proposed ON job (proposed_at) WHERE proposed_at IS NOT NULL;
CREATE INDEX job_proposed_session ON job (proposed_session_no) WHERE proposed_session_no IS NOT NULL;
CREATE INDEX job_ended ON job (updated_at) WHERE state = 'ended';   -- old ones are deleted
CREATE INDEX job_origin_session ON job (origin_session_no) WHERE origin_session_no IS NOT NULL;

-- One run of a job, identified by the job and its slot, or several slots that were missed together.
-- queued → running → done | failed; or at once, or instead of being started: missed | skipped.
CREATE TABLE job_run (
    no              @SERIAL_KEY_NEVER_REUSED@,
    id              TEXT NOT NULL UNIQUE,
    job_no          BIGINT NOT NULL REFERENCES job (no) ON DELETE CASCADE,
    slot            BIGINT NOT NULL,                         -- the scheduled time; of a manual run, when it was asked for
    slot_count      BIGINT NOT NULL DEFAULT 1,               -- more than 1: this many slots from `slot` on were missed
    kind            TEXT NOT NULL CHECK (kind IN ('scheduled', 'manual')),
    state           TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'missed', 'skipped')),
    reason          TEXT,                                    -- why it failed, was missed or skipped, in words
    cause           TEXT,                                    -- a code or digest by which equal failures are recognized
    result          TEXT CHECK (result IN ('answer', 'silent')),   -- of a run that is done
    reported_failure TEXT,                                   -- what the agent itself reported with `report_failure`
    refused_tools   TEXT,                                    -- JSON list: tools that it wanted and was not granted
    target_errors   TEXT,                                    -- JSON: target → why nothing could be sent there
    start_after     BIGINT NOT NULL,                         -- late runs are spread
    is_untold       SMALLINT NOT NULL DEFAULT 0,             -- it was missed, and its person is still to be told
    session_no      BIGINT REFERENCES session (no) ON DELETE SET NULL,   -- its own conversation
    turn_no         BIGINT REFERENCES turn (no) ON DELETE SET NULL,      -- its deliveries have the same `turn_no`
    created_at      BIGINT NOT NULL,
    started_at      BIGINT,
    ended_at        BIGINT,
    UNIQUE (job_no, slot),
    CHECK ((state IN ('queued', 'running')) = (ended_at IS NULL))
);
CREATE UNIQUE INDEX one_open_run_per_job ON job_run (job_no) WHERE state IN ('queued', 'running');
CREATE INDEX job_run_queued ON job_run (start_after, no) WHERE state = 'queued';
CREATE INDEX job_run_running ON job_run (no) WHERE state = 'running';
CREATE INDEX job_run_untold ON job_run (job_no) WHERE is_untold = 1;
CREATE INDEX job_run_ended ON job_run (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX job_run_session ON job_run (session_no) WHERE session_no IS NOT NULL;
CREATE INDEX job_run_turn ON job_run (turn_no) WHERE turn_no IS NOT NULL;

-- ---- messages to chats -----------------------------------------------------------------------------------

-- The message of its session that a delivery sends, if that is not the answer of a turn: a job or the agent sent it there.
ALTER TABLE delivery ADD COLUMN message_seq BIGINT;

-- The texts of parts that were sent are emptied after a while: the answer itself is in the log.
CREATE INDEX delivery_part_body ON delivery_part (delivery_no) WHERE state = 'sent' AND body <> '';

-- Finds the chats in which a person has written, without reading their conversations on the page.
DROP INDEX lane_audience;
CREATE INDEX lane_audience ON lane (audience_no, key);
-- Finds those who may send to every chat, and whose jobs may do so.
CREATE INDEX person_owner ON person (role) WHERE role = 'owner';

-- ---- expiry and memory -----------------------------------------------------------------------------------

-- Finds the conversations whose reset policy has run out.
CREATE INDEX session_open_activity ON session (platform, chat_type, (COALESCE(last_human_at, created_at)), no) WHERE ended_at IS NULL;
-- Lists those that it has ended.
CREATE INDEX session_expired ON session (active_at, no, platform) WHERE end_reason IN ('idle', 'daily') AND active_at IS NOT NULL;
CREATE INDEX session_audience_expired ON session (audience_no, active_at, no, platform) WHERE end_reason IN ('idle', 'daily') AND active_at IS NOT NULL;

ALTER TABLE memory ADD COLUMN origin TEXT NOT NULL DEFAULT 'person' CHECK (origin IN ('person', 'agent', 'learned'));
ALTER TABLE memory ADD COLUMN session_id TEXT;               -- the conversation that it is from, if any; it may be deleted

-- The memories that the agent is told of in the instructions of a session; chosen at its start and at each compaction.
-- Only their ids are kept here, so what a person forgets is gone from every session at once.
CREATE TABLE memory_block (
    session_no  BIGINT PRIMARY KEY REFERENCES session (no) ON DELETE CASCADE,
    memory_ids  TEXT NOT NULL,                               -- JSON list, the newest first
    seq         BIGINT NOT NULL,                             -- of the compaction that it was made at; 0: at the start
    created_at  BIGINT NOT NULL
);

-- A model looks once through what people wrote in a session, to remember facts. A row is never run twice.
CREATE TABLE memory_turn (
    session_no  BIGINT NOT NULL REFERENCES session (no) ON DELETE CASCADE,
    up_to_seq   BIGINT NOT NULL,
    person_id   TEXT NOT NULL,                               -- on whose behalf
    kind        TEXT NOT NULL CHECK (kind IN ('expiry', 'compaction', 'new', 'forgotten')),   -- what it follows
    state       TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
    error       TEXT,
    lease_owner TEXT,                                        -- the process that runs it
    lease_until BIGINT,                                      -- after this, its process has certainly given up
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    PRIMARY KEY (session_no, up_to_seq),
    CHECK ((state IN ('queued', 'running')) = (ended_at IS NULL))
) @CLUSTERED@;
CREATE INDEX memory_turn_open ON memory_turn (created_at) WHERE ended_at IS NULL;
CREATE INDEX memory_turn_person ON memory_turn (person_id) WHERE ended_at IS NULL;   -- linked to another person

-- ---- budgets ---------------------------------------------------------------------------------------------

-- A limit that an owner has set. It wins over config.yaml.
CREATE TABLE budget_limit (
    scope       TEXT NOT NULL CHECK (scope IN ('all', 'person', 'job', 'profile')),
    subject     TEXT NOT NULL,                               -- person id, job id, profile name; empty: each of them, or all
    period      TEXT NOT NULL CHECK (period IN ('day', 'month')),
    unit        TEXT NOT NULL CHECK (unit IN ('usd', 'tokens')),
    amount      BIGINT,                                      -- nano-dollars or tokens; NULL: no limit, whatever config.yaml says
    set_by      TEXT,                                        -- person
    set_at      BIGINT NOT NULL,
    PRIMARY KEY (scope, subject, period, unit)
);

-- What was used and is held in one day or month, by everybody, a person, a job or a profile.
CREATE TABLE budget_window (
    scope         TEXT NOT NULL,
    subject       TEXT NOT NULL,
    period        TEXT NOT NULL,
    starts_at     BIGINT NOT NULL,                           -- midnight in the gateway's time zone
    used_nanos    BIGINT NOT NULL DEFAULT 0,
    held_nanos    BIGINT NOT NULL DEFAULT 0,
    used_tokens   BIGINT NOT NULL DEFAULT 0,
    held_tokens   BIGINT NOT NULL DEFAULT 0,
    unpriced_calls BIGINT NOT NULL DEFAULT 0,                -- whose price is unknown
    is_warned     SMALLINT NOT NULL DEFAULT 0,               -- people were told that most of it is used
    PRIMARY KEY (scope, subject, period, starts_at),
    CHECK (held_nanos >= 0 AND held_tokens >= 0)
) @CLUSTERED@;
CREATE INDEX budget_window_starts ON budget_window (starts_at);

-- A call to a model that is under way, or whose usage is not recorded with its turn yet. What a process that died leaves
-- here is counted by another.
CREATE TABLE model_call (
    no            @SERIAL_KEY_NEVER_REUSED@,
    id            TEXT NOT NULL UNIQUE,
    owner         TEXT NOT NULL,                             -- the process
    purpose       TEXT NOT NULL CHECK (purpose IN ('answer', 'summary', 'title', 'memory')),
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
CREATE INDEX model_call_owner ON model_call (owner);
CREATE INDEX model_call_turn ON model_call (turn_id) WHERE turn_id IS NOT NULL;
