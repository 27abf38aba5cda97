/**
 * What a conversation shows, line by line, made from its log, the answers that are being given and what was just said
 * here. Pure.
 *
 * Always true: an answer has the same key while it is drafted and when it is stored, so that one becomes the other
 * without a flicker. No two rows have the same key.
 */
import type { LogEvent, Piece, Turn } from "../api/types";
import type { Conversation } from "../live/state";
import type { Entry } from "../outbox/entries";
import { callsOf, textOf } from "./content";

export interface ToolPart {
  kind: "tool";
  id: string;
  name: string;
  arguments: string;
  result: string | null;
  failed: boolean;
  beganAt: string | null; // known while it runs
  took: number | null; // milliseconds
}

interface Result {
  text: string;
  failed: boolean;
  took: number | null;
}

export type Part = { kind: "text" | "reasoning"; text: string } | ToolPart;

export interface AnswerRow {
  kind: "answer";
  key: string;
  seqs: readonly number[];
  answers: number | null; // the message it answers
  at: string | null;
  parts: readonly Part[];
  running: boolean;
  interrupted: boolean;
  took: number | null; // milliseconds, for all of it
}

export type Row =
  | { kind: "day"; key: string; at: string }
  | { kind: "said"; key: string; event: LogEvent }
  | AnswerRow
  | { kind: "quiet"; key: string; event: LogEvent; latest: boolean } // nothing was said since, nor the same changed again
  | { kind: "waiting"; key: string; turn: Turn; ahead: number }
  | { kind: "pending"; key: string; entry: Entry };

const QUIET = new Set(["reopened", "undone", "forked", "interrupted", "failed", "compacted", "expanded", "resent", "changed"]);
const TOLD_STARTS = new Set(["idle", "daily", "manual", "fork"]);

/** The rows of a log. `dayOf` says on which day something happened, where the reader is. */
export function storedRows(events: readonly LogEvent[], dayOf: (at: string) => string): Row[] {
  const rows: Row[] = [];
  const redone = new Set(events.filter((each) => each.kind === "redone").map((each) => each.facts.undone));
  const lastSaid = events.findLast((event) => event.kind === "message")?.seq ?? 0;
  const lastChange = new Map(events.filter((each) => each.kind === "changed").map((each) => [each.facts.setting, each.seq]));
  let day = "";
  for (const event of events) {
    if (!isShown(event, redone)) continue;
    const today = dayOf(event.at);
    if (today !== day) rows.push({ kind: "day", key: `day-${event.seq}`, at: event.at });
    day = today;
    const isOutdated = event.kind === "changed" && lastChange.get(event.facts.setting) !== event.seq;
    addEvent(rows, event, event.seq > lastSaid && !isOutdated);
  }
  return withKeysOnce(rows);
}

/** What comes after the log: answers that are being given, what waits, and what was just said here. */
export function liveRows(known: Conversation, pending: readonly Entry[], stored: readonly Row[]): Row[] {
  if (known.moreAfter) return [];
  const rows: Row[] = [];
  let ahead = 0;
  for (const turn of known.turns) {
    const key = answerKey(turn.input_seq);
    if (turn.state === "queued" && ahead > 0) {
      rows.push({ kind: "waiting", key: `waiting-${turn.id}`, turn, ahead });
    } else if (turn.kind === "answer" && !stored.some((row) => row.key === key)) {
      rows.push(draftRow(turn.input_seq, partsOf(known.drafts[turn.id] ?? [])));
    }
    ahead += 1;
  }
  for (const entry of pending) rows.push({ kind: "pending", key: `pending-${entry.key}`, entry });
  return rows;
}

function isShown(event: LogEvent, redone: ReadonlySet<unknown>): boolean {
  if (event.kind === "message") return !event.hidden && event.message !== null;
  if (event.kind === "started") return TOLD_STARTS.has(String(event.facts.reason));
  if (event.kind === "undone") return !redone.has(event.seq);
  return QUIET.has(event.kind);
}

function addEvent(rows: Row[], event: LogEvent, latest: boolean): void {
  const message = event.message;
  if (event.kind !== "message" || message === null) {
    rows.push({ kind: "quiet", key: `quiet-${event.seq}`, event, latest });
  } else if (message.role === "assistant" || message.role === "tool") {
    addAnswer(rows, event, message);
  } else {
    rows.push({ kind: "said", key: `said-${event.seq}`, event });
  }
}

function addAnswer(rows: Row[], event: LogEvent, message: NonNullable<LogEvent["message"]>): void {
  const last = rows.at(-1);
  const key = message.answers == null ? null : answerKey(message.answers);
  if (last?.kind === "answer" && (key === null || key === last.key)) {
    rows[rows.length - 1] = {
      ...last,
      seqs: [...last.seqs, event.seq],
      parts: withMessage(last.parts, message),
      interrupted: last.interrupted || message.interrupted === true,
      took: tookOf(message) ?? last.took,
    };
    return;
  }
  rows.push({
    kind: "answer",
    key: key ?? `answer-at-${event.seq}`,
    seqs: [event.seq],
    answers: message.answers ?? null,
    at: event.at,
    parts: withMessage([], message),
    running: false,
    interrupted: message.interrupted === true,
    took: tookOf(message),
  });
}

/** How long an answer took that ends with a message; what a single tool took is told with the tool. */
function tookOf(message: NonNullable<LogEvent["message"]>): number | null {
  return message.role === "assistant" ? (message.duration_ms ?? null) : null;
}

const answerKey = (inputSeq: number) => `answer-${inputSeq}`;

function withMessage(parts: readonly Part[], message: NonNullable<LogEvent["message"]>): Part[] {
  if (message.role === "tool") {
    const took = message.duration_ms ?? null;
    const result = { text: textOf(message.content), failed: message.is_error === true, took };
    return withResult(parts, message.tool_call_id ?? "", message.tool_name ?? "", result);
  }
  const more: Part[] = [...parts];
  if (message.reasoning) more.push({ kind: "reasoning", text: message.reasoning });
  const text = textOf(message.content);
  if (text !== "") more.push({ kind: "text", text });
  for (const call of callsOf(message.tool_calls)) more.push(toolPart(call));
  return more;
}

function toolPart(call: { id: string; name: string; arguments: string }, beganAt: string | null = null): ToolPart {
  return { kind: "tool", ...call, result: null, failed: false, beganAt, took: null };
}

function withResult(parts: readonly Part[], id: string, name: string, { text, ...how }: Result): Part[] {
  const found = parts.findLastIndex((part) => part.kind === "tool" && part.id === id && part.result === null);
  const call = found < 0 ? undefined : parts[found];
  if (call?.kind !== "tool") {
    return [...parts, { ...toolPart({ id, name, arguments: "" }), result: text, ...how }];
  }
  return parts.with(found, { ...call, result: text, ...how });
}

/** The parts of an answer that is being given. */
export function partsOf(pieces: readonly Piece[]): Part[] {
  let parts: Part[] = [];
  for (const piece of pieces) {
    if (piece.kind === "result") {
      const result = { text: piece.text ?? "", failed: piece.failed === true, took: piece.duration_ms ?? null };
      parts = withResult(parts, piece.call_id ?? "", piece.name ?? "", result);
    } else if (piece.kind === "call") {
      const call = { id: piece.call_id ?? "", name: piece.name ?? "", arguments: piece.arguments ?? "" };
      parts.push(toolPart(call, piece.began_at ?? null));
    } else if (piece.text) {
      parts.push({ kind: piece.kind, text: piece.text });
    }
  }
  return parts;
}

function draftRow(answers: number, parts: readonly Part[]): AnswerRow {
  return { kind: "answer", key: answerKey(answers), seqs: [], answers, at: null, parts, running: true, interrupted: false, took: null };
}

/** The rows under keys of which each is there once: two alike would leave a row behind that belongs to nothing. */
export function withKeysOnce(rows: readonly Row[]): Row[] {
  const seen = new Set<string>();
  return rows.map((row, place) => {
    const key = seen.has(row.key) ? `${row.key}-${place}` : row.key;
    seen.add(key);
    return key === row.key ? row : { ...row, key };
  });
}

/** Where a message stands among the rows; -1 when it is not there. */
export function rowOf(rows: readonly Row[], seq: number): number {
  const exact = rows.findIndex((row) => seqsOf(row).includes(seq));
  return exact >= 0 ? exact : rows.findIndex((row) => seqsOf(row).some((each) => each >= seq));
}

function seqsOf(row: Row): readonly number[] {
  if (row.kind === "answer") return row.seqs;
  return row.kind === "said" || row.kind === "quiet" ? [row.event.seq] : [];
}
