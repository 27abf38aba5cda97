/** The types of the API under the names that the page uses. `schema.ts` is generated from the API's own description. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Session = Schemas["SessionOut"];
/** What a conversation has chosen besides its model; null: the default. */
export type SessionChoices = Pick<Session, "profile" | "personality" | "workspace">;
export type SessionPatch = Partial<Schemas["SessionChangesIn"]>;
export type Message = Schemas["MessageOut"];
export type LogEvent = Schemas["EventOut"];
export type TranscriptPage = Schemas["EventsOut"];
export type Receipt = Schemas["ReceiptOut"];
export type Project = Schemas["ProjectOut"];
export type Storage = Schemas["StorageOut"];
export type SavedPrompt = Schemas["SavedPromptJson"];
export type SavedPrompts = Schemas["SavedPromptsJson"];
export type SearchHit = Schemas["SearchHitOut"];
export type MessageSearchResults = Schemas["SearchResultsOut"];
export type Me = Schemas["MeOut"];
export type Models = Schemas["ModelsOut"];
export type OfferedModels = Schemas["OfferedModelsOut"];
export type Profile = Schemas["ProfileOut"];
export type Profiles = Schemas["ProfilesOut"];
export type Toolset = Schemas["ToolsetOut"];
export type Toolsets = Schemas["ToolsetsOut"];
export type Command = Schemas["CommandOut"];
export type Attachment = Schemas["AttachmentOut"];
export type SignInMethods = Schemas["ServerSignInMethodsOut"];
export type Policies = Schemas["PoliciesOut"];
export type BusyPolicy = Schemas["BusyPolicy"];
export type ReplyTo = Schemas["ReplyTo"];
export type Delivery = Schemas["DeliveryOut"];
export type SentBy = Schemas["SentByOut"];

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
