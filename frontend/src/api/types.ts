/** The types of the API under the names that the page uses. `schema.ts` is generated from the API's own description. */
import type { components } from "./schema";

export type Schemas = components["schemas"];

export type Session = Schemas["ConversationJson"];
/** What a conversation has chosen besides its model; null: the default. */
export type SessionChoices = Pick<Session, "profile" | "personality" | "workspace">;
export type SessionPatch = Partial<Schemas["SessionChangesIn"]>;
export type Message = Schemas["MessageJson"];
export type LogEvent = Schemas["LogEventJson"];
export type TranscriptPage = Schemas["LogPageJson"];
export type Receipt = Schemas["ReceiptJson"];
export type Project = Schemas["ProjectJson"];
export type SavedPrompt = Schemas["SavedPromptJson"];
export type SavedPrompts = Schemas["SavedPromptsJson"];
export type SearchHit = Schemas["SearchHitJson"];
export type Me = Schemas["MeJson"];
export type Models = Schemas["ModelsJson"];
export type OfferedModels = Schemas["OfferedModelsJson"];
export type Profile = Schemas["ProfileJson"];
export type Profiles = Schemas["ProfilesJson"];
export type Toolset = Schemas["ToolsetJson"];
export type Command = Schemas["CommandJson"];
export type BusyPolicy = Schemas["BusyPolicy"];
export type ReplyTo = Schemas["ReplyTo"];
export type Delivery = Schemas["DeliveryJson"];
export type SentBy = Schemas["SentByJson"];

/** A turn, as the live stream reports it. */
export interface Turn {
  id: string;
  state: "queued" | "running" | "done" | "failed" | "interrupted";
  kind: "answer" | "compact";
  input_seq: number;
  attempt: number;
  is_steering: boolean; // its message goes to the running answer, if that still accepts one
  error: string | null;
  created_at: string;
  ended_at: string | null;
  delivers_to: string | null; // the platform that its answer is sent to
  quoted_seqs: number[]; // messages that are quoted above the answer on that platform
}

/** One piece of an answer that the agent is still writing. The server leaves out empty fields. */
export interface DraftPiece {
  kind: "text" | "reasoning" | "call" | "result";
  text?: string;
  call_id?: string;
  name?: string;
  arguments?: string;
  failed?: boolean;
  started_at?: string; // of a call
  duration_ms?: number; // of a result
}

/** The events of the live stream, by name. */
export type LiveItem =
  | { name: "session"; data: Session }
  | { name: "session_removed"; data: { id: string } }
  | { name: "event"; data: { session_id: string; event: LogEvent } }
  | { name: "turn"; data: { session_id: string; turn: Turn } }
  | { name: "draft"; data: { session_id: string; turn_id: string; replaces_draft: boolean; pieces: DraftPiece[] } }
  | { name: "notice"; data: { session_id: string; turn_id: string; text: string; code: string; facts: Record<string, unknown> } }
  | { name: "delivery"; data: { session_id: string; delivery: Delivery } }
  | { name: "lists_changed"; data: Record<string, never> };
