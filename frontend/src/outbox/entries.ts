/**
 * What was said on this page and has no receipt yet. Pure.
 *
 * Always true: an entry is shown until the message it became is shown, and never beside it.
 */
import type { BusyPolicy, LogEvent, ReplyTo } from "../api/types";
import { textOf } from "../conversation/content";

export interface Entry {
  key: string; // makes sending it twice harmless
  session: string | null; // null: a conversation that is still to be begun
  begin: { title?: string; project?: string }; // how, where it is
  text: string;
  attachments: { id: string; name: string; type: string; size: number }[];
  busy?: BusyPolicy | undefined;
  reply?: ReplyTo | undefined; // where its answer is read; nothing: here
  at: string;
  after: number; // the last event that was known when it was said
  seq: number | null; // its number in the log, once there is a receipt
  refused: string | null; // why it was not taken
}

/** Those entries of a conversation whose messages are not among its events. */
export function stillPending(entries: readonly Entry[], events: readonly LogEvent[], person: string): Entry[] {
  const taken = new Set<number>(entries.map((entry) => entry.seq).filter((seq) => seq !== null));
  const last = events.at(-1)?.seq ?? 0;
  return entries.filter((entry) => {
    if (entry.seq !== null) return entry.seq > last;
    if (entry.refused !== null) return true;
    const match = events.find((event) => event.seq > entry.after && !taken.has(event.seq) && says(event, entry, person));
    if (match !== undefined) taken.add(match.seq);
    return match === undefined;
  });
}

function says(event: LogEvent, entry: Entry, person: string): boolean {
  if (event.message?.role !== "user" || event.person?.id !== person) return false;
  return textOf(event.message.content).trim() === entry.text.trim();
}

/** Entries as they were kept, without what cannot be read. */
export function readEntries(kept: unknown): Entry[] {
  if (!Array.isArray(kept)) return [];
  return kept.filter(
    (each): each is Entry => typeof each === "object" && each !== null && "key" in each && "text" in each,
  );
}
