/** Sample values for tests. */
import type { Delivery, LogEvent, Session, Turn } from "../api/types";

export function event(seq: number, kind: string, facts: Record<string, unknown> = {}, at = "2026-11-15T08:12:00Z"): LogEvent {
  return { seq, kind, at, hidden: false, person: null, message: null, facts };
}

export function message(seq: number, content: string, at?: string): LogEvent {
  return {
    ...event(seq, "message", {}, at),
    person: { id: "p_1", name: "Ann" },
    message: { role: "user", content },
  };
}

export function answer(seq: number, content: string | null, answers: number | null, more: object = {}): LogEvent {
  return { ...event(seq, "message"), message: { role: "assistant", content, answers_seq: answers, ...more } };
}

export function delivery(id: string, inputSeq: number, more: Partial<Delivery> = {}): Delivery {
  return {
    id,
    turn_id: "t_1",
    input_seq: inputSeq,
    message_seq: null,
    quoted_seqs: [],
    platform: "telegram",
    state: "pending",
    error: null,
    created_at: "2026-11-15T08:12:00Z",
    ended_at: null,
    ...more,
  };
}

export function turn(id: string, inputSeq: number, state: Turn["state"], more: Partial<Turn> = {}): Turn {
  return {
    id,
    state,
    kind: "answer",
    input_seq: inputSeq,
    attempt: 1,
    is_steering: false,
    error: null,
    created_at: "2026-11-15T08:12:00Z",
    ended_at: null,
    delivers_to: null,
    quoted_seqs: [],
    ...more,
  };
}

export function session(id: string, more: Partial<Session> = {}): Session {
  return {
    id,
    title: null,
    auto_title: null,
    display_name: "",
    preview: "",
    end_reason: null,
    platform: "web",
    chat_type: "dm",
    shared: false,
    source: { platform: "web", chat_name: null, user_name: null },
    message_count: 1,
    tool_call_count: 0,
    is_first_contact: false,
    created_at: "2026-11-15T08:12:00Z",
    active_at: "2026-11-15T08:12:00Z",
    ended_at: null,
    pinned: false,
    archived: false,
    project_id: null,
    parent_id: null,
    model: null,
    model_provider: null,
    chosen_model: null,
    profile: null,
    personality: null,
    workspace: null,
    busy_policy: null,
    disabled_toolsets: [],
    running: false,
    queued: 0,
    last_seq: 1,
    read_seq: 1,
    context_tokens: 0,
    usage: {
      input_tokens: 0,
      output_tokens: 0,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      cost_usd: null,
      estimated_cost_usd: null,
      cost_status: "unknown",
      unpriced_turns: 0,
    },
    reachable: false,
    owner_name: null,
    ...more,
  };
}
