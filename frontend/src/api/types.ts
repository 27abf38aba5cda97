/** The shapes of the API under the names the page uses. `schema.ts` is made from the API's own description. */
import type { components } from "./schema";

type Shapes = components["schemas"];

export type Session = Shapes["SessionOut"];
export type SessionPatch = Partial<Shapes["SessionPatch"]>;
export type Message = Shapes["MessageOut"];
export type LogEvent = Shapes["EventOut"];
export type Events = Shapes["EventsOut"];
export type Receipt = Shapes["ReceiptOut"];
export type Project = Shapes["ProjectOut"];
export type Hit = Shapes["HitOut"];
export type Hits = Shapes["HitsOut"];
export type Me = Shapes["MeOut"];
export type Models = Shapes["ModelsOut"];
export type Toolset = Shapes["ToolsetOut"];
export type Toolsets = Shapes["ToolsetsOut"];
export type Command = Shapes["CommandOut"];
export type Attachment = Shapes["AttachmentOut"];
export type WaysIn = Shapes["WaysInOut"];
export type Policies = Shapes["PoliciesOut"];
export type BusyPolicy = Shapes["BusyPolicy"];
export type ReplyTo = Shapes["ReplyTo"];
export type Delivery = Shapes["DeliveryOut"];

/** One run of the agent, as the live stream tells of it. */
export interface Turn {
  id: string;
  state: "queued" | "running" | "done" | "failed" | "interrupted";
  kind: "answer" | "compact";
  input_seq: number;
  attempt: number;
  steers: boolean; // given to the answer before it, if that still takes something
  error: string | null;
  created_at: string;
  ended_at: string | null;
  goes_to: string | null; // the platform that its answer is sent to
  quotes: number[]; // messages that are quoted before the answer there
}

/** One piece of an answer that is being given. What is empty is left out. */
export interface Piece {
  kind: "text" | "reasoning" | "call" | "result";
  text?: string;
  call_id?: string;
  name?: string;
  arguments?: string;
  failed?: boolean;
  began_at?: string; // of a call
  duration_ms?: number; // of a result
}

/** What comes on the live stream, by the name of the event. */
export type LiveItem =
  | { name: "session"; data: Session }
  | { name: "gone"; data: { id: string } }
  | { name: "event"; data: { session_id: string; event: LogEvent } }
  | { name: "turn"; data: { session_id: string; turn: Turn } }
  | { name: "draft"; data: { session_id: string; turn_id: string; afresh: boolean; pieces: Piece[] } }
  | { name: "notice"; data: { session_id: string; turn_id: string; text: string } }
  | { name: "delivery"; data: { session_id: string; delivery: Delivery } }
  | { name: "lists"; data: Record<string, never> };
