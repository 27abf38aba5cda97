-- Older versions may go on writing.
-- Starts the first session of a lane with its first message, and adds the person if they are unknown: all in the one
-- statement that appends a message, so that the first message of a chat costs one round trip, as each later one does.
-- Returns nothing, having changed nothing, if the lane exists. `sessions/lanes_table.py` does the same step by step.
CREATE FUNCTION palaver_start_session(
    lane_key text, now bigint, is_human bigint, new_preview text, new_tool_calls bigint, new_title text,
    new_role text, new_content text, new_body text, new_platform_message_id text,
    new_platform text, new_account text, new_person_id text, new_name text, new_person_role text,
    new_chat_type text, new_source text, new_session_id text
) RETURNS TABLE (session_no bigint, seq bigint, id text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    own bigint;
    is_first bigint := 1;
BEGIN
    IF EXISTS (SELECT FROM lane WHERE key = lane_key) THEN
        RETURN;
    END IF;
    SELECT p.audience_no INTO own FROM identity i JOIN person p ON p.id = i.person_id
        WHERE i.platform = new_platform AND i.account = new_account;
    IF NOT FOUND THEN
        WITH added AS (INSERT INTO audience (created_at) VALUES (now) RETURNING no),
            new_person AS (INSERT INTO person (id, name, role, audience_no, created_at)
                SELECT new_person_id, new_name, new_person_role, no, now FROM added),
            new_member AS (INSERT INTO audience_member (person_id, audience_no, joined_at)
                SELECT new_person_id, no, now FROM added),
            new_identity AS (INSERT INTO identity (platform, account, person_id, created_at)
                SELECT new_platform, new_account, new_person_id, now FROM added)
            SELECT no INTO own FROM added;
    ELSIF EXISTS (SELECT FROM session s WHERE s.audience_no = own AND s.active_at IS NOT NULL) THEN
        is_first := 0;
    END IF;
    RETURN QUERY WITH started AS (
            INSERT INTO session (id, key, platform, chat_type, source, audience_no, shared, created_at, start_reason,
                is_first_contact, last_seq, message_count, tool_call_count, last_message_at, last_human_at, expiry_base,
                active_at, unindexed, preview, auto_title)
            VALUES (new_session_id, lane_key, new_platform, new_chat_type, new_source, own, 0, now, 'first',
                is_first, 2, 1, new_tool_calls, now, CASE WHEN is_human = 1 THEN now END, now,
                now, 1, COALESCE(new_preview, ''), new_title)
            RETURNING no, last_seq),
        opened AS (INSERT INTO lane (key, session_no, source, audience_no, shared, updated_at)
            SELECT lane_key, no, new_source, own, 0, now FROM started),
        stored AS (INSERT INTO event (session_no, seq, kind, created_at, role, content, body, platform_message_id)
            SELECT no, last_seq - 1, 'started', now, NULL, NULL, '{"reason": "first"}', NULL FROM started
            UNION ALL
            SELECT no, last_seq, 'message', now, new_role, new_content, new_body, new_platform_message_id FROM started)
        SELECT no, last_seq, new_session_id FROM started;
END $$;
