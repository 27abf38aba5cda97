/**
 * The messages that were sent on this page and may not have arrived yet. Pure.
 *
 * Always true: an entry is shown until its message is shown, and never together with it.
 */
import { readText, type FilePart } from "../api/messageContent";
import type { BusyPolicy, LogEvent, ReplyTo, Schemas } from "../api/types";

export interface OutboxEntry {
  key: string; // the idempotency key: sending twice makes one message
  session: string | null; // null: the conversation has to be created first
  newSession: Schemas["NewSessionIn"]; // how to create it
  text: string;
  attachments: FilePart[];
  busy?: BusyPolicy | undefined;
  reply?: ReplyTo | undefined; // where the answer is delivered; by default only to the session
  at: string;
  afterSeq: number; // the last event that the page knew when the message was sent
  seq: number | null; // the sequence number of its message, once there is a receipt
  rejection: string | null; // why the server did not accept it
}

/** Finds the entries of a conversation whose messages are not among its events. */
export function findPendingEntries(
  entries: readonly OutboxEntry[],
  events: readonly LogEvent[],
  personId: string,
): OutboxEntry[] {
  const matched = new Set<number>(entries.map((entry) => entry.seq).filter((seq) => seq !== null));
  const lastSeq = events.at(-1)?.seq ?? 0;
  return entries.filter((entry) => {
    if (entry.seq !== null) return entry.seq > lastSeq;
    if (entry.rejection !== null) return true;
    const match = events.find(
      (event) => event.seq > entry.afterSeq && !matched.has(event.seq) && isMessageOf(event, entry, personId),
    );
    if (match !== undefined) matched.add(match.seq);
    return match === undefined;
  });
}

function isMessageOf(event: LogEvent, entry: OutboxEntry, personId: string): boolean {
  if (event.message?.role !== "user" || event.person?.id !== personId) return false;
  return readText(event.message.content).trim() === entry.text.trim();
}

/** Reads stored entries, and leaves out what is not one. */
export function parseEntries(stored: unknown): OutboxEntry[] {
  if (!Array.isArray(stored)) return [];
  return stored.filter(
    (entry): entry is OutboxEntry => typeof entry === "object" && entry !== null && "key" in entry && "text" in entry,
  );
}
