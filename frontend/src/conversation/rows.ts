/**
 * The rows of a conversation, built from its log, the running answers and the messages that were just sent. Pure.
 *
 * Always true: an answer stands under its question, also if other messages arrived while it was written. It has the same key
 * while it is a draft and after it is stored, so that the row does not flicker. No two rows have the same key.
 */
import { readText, readToolCalls } from "../api/messageContent";
import type { DraftPiece, LogEvent, Message, SentBy, Turn } from "../api/types";
import type { Conversation } from "../live/state";
import type { OutboxEntry } from "../outbox/entries";

export interface ToolPart {
  kind: "tool";
  id: string;
  name: string;
  arguments: string;
  result: string | null;
  failed: boolean;
  startedAt: string | null; // while it is running
  durationMs: number | null;
}

interface ToolOutcome {
  text: string;
  failed: boolean;
  durationMs: number | null;
}

export type Part = { kind: "text" | "reasoning"; text: string } | ToolPart;

export interface AnswerRow {
  kind: "answer";
  key: string;
  seqs: readonly number[];
  answers: number | null; // the sequence number of the message that it answers
  at: string | null;
  parts: readonly Part[];
  running: boolean;
  interrupted: boolean;
  durationMs: number | null; // of the whole answer
  sentBy: SentBy | null; // it is no answer: a job, or the agent in another conversation, sent it here
}

export type Row =
  | { kind: "day"; key: string; at: string }
  | { kind: "message"; key: string; event: LogEvent }
  | AnswerRow
  | { kind: "event"; key: string; event: LogEvent; isLatest: boolean } // nothing later makes it outdated
  | { kind: "waiting"; key: string; turn: Turn; ahead: number }
  | { kind: "pending"; key: string; entry: OutboxEntry };

const SHOWN_EVENTS = new Set([
  "reopened",
  "undone",
  "forked",
  "turn_interrupted",
  "turn_failed",
  "compacted",
  "compaction_undone",
  "answer_resent",
  "setting_changed",
  "message_edited",
  "message_deleted",
  "reaction",
  "members_changed",
  "job_proposed",
  "job_confirmed",
  "job_rejected",
]);
const SHOWN_START_REASONS = new Set(["idle", "daily", "manual", "fork"]);

/** Builds the rows of a log. `getDay` returns the day of a time in the reader's time zone. */
export function buildStoredRows(events: readonly LogEvent[], getDay: (at: string) => string): Row[] {
  const rows: Row[] = [];
  const undoneTurns = countUndoneTurns(events);
  const lastMessageSeq = events.findLast((event) => event.kind === "message")?.seq ?? 0;
  const lastChangeSeqs = new Map(
    events.filter((each) => each.kind === "setting_changed").map((each) => [each.facts.setting, each.seq]),
  );
  const lastJobSeqs = new Map(events.filter(isAboutJob).map((each) => [each.facts.job_id, each.seq]));
  let day = "";
  for (const { event, isMoved } of orderByQuestion(events.filter((each) => isShown(each, undoneTurns)))) {
    const eventDay = isMoved && day !== "" ? day : getDay(event.at);
    if (eventDay !== day) rows.push({ kind: "day", key: `day-${event.seq}`, at: event.at });
    day = eventDay;
    const isOutdated = event.kind === "setting_changed" && lastChangeSeqs.get(event.facts.setting) !== event.seq;
    const turns = undoneTurns.get(event.seq);
    const shown = turns === undefined ? event : { ...event, facts: { ...event.facts, turns } };
    const isLatest = isAboutJob(event)
      ? lastJobSeqs.get(event.facts.job_id) === event.seq // it can be confirmed after other messages, too
      : event.seq > lastMessageSeq && !isOutdated && !isMoved;
    addEvent(rows, shown, isLatest);
  }
  return makeKeysUnique(rows);
}

/** Adds running answers and queued turns below their messages and, at the end, messages that have not arrived yet. */
export function addLiveRows(stored: readonly Row[], conversation: Conversation, pending: readonly OutboxEntry[]): readonly Row[] {
  if (conversation.moreAfter) return stored;
  const rows = [...stored];
  let ahead = 0;
  for (const turn of conversation.turns) {
    const key = buildAnswerKey(turn.input_seq);
    if (turn.state === "queued" && ahead > 0) {
      insertBelowQuestion(rows, turn.input_seq, { kind: "waiting", key: `waiting-${turn.id}`, turn, ahead });
    } else if (turn.kind === "answer" && !stored.some((row) => row.key === key)) {
      insertBelowQuestion(rows, turn.input_seq, buildDraftRow(turn.input_seq, buildParts(conversation.drafts[turn.id] ?? [])));
    }
    ahead += 1;
  }
  for (const entry of pending) rows.push({ kind: "pending", key: `pending-${entry.key}`, entry });
  return rows;
}

function insertBelowQuestion(rows: Row[], questionSeq: number, row: Row): void {
  let index = findNextQuestion(rows, questionSeq, (each) => (each.kind === "message" ? each.event.seq : null)) ?? rows.length;
  while (isJobRow(rows[index - 1])) index -= 1; // the answer in which a job is proposed stands above it
  rows.splice(index, 0, row);
}

/**
 * Puts answers, and why there is none, below their questions. In the log, a message that arrives during an answer stands before
 * that answer. `isMoved` tells what does not stand where the log has it.
 */
function orderByQuestion(events: readonly LogEvent[]): { event: LogEvent; isMoved: boolean }[] {
  const ordered: { event: LogEvent; isMoved: boolean }[] = [];
  for (const event of events) {
    const answeredSeq = getAnsweredSeq(event);
    const index = answeredSeq === null ? null : findNextQuestion(ordered, answeredSeq, (each) => getQuestionSeq(each.event));
    ordered.splice(index ?? ordered.length, 0, { event, isMoved: index !== null });
  }
  return moveProposalsBelowAnswers(ordered);
}

/** Puts a proposed job below the answer in which it was proposed: the log has it before, because it is stored at once. */
function moveProposalsBelowAnswers<T extends { event: LogEvent }>(items: readonly T[]): T[] {
  const ordered: T[] = [];
  const held: T[] = [];
  for (const item of items) {
    const { kind, message } = item.event;
    if (kind === "job_proposed") {
      held.push(item);
    } else {
      if (message === null || !isAnswer(message)) ordered.push(...held.splice(0));
      ordered.push(item);
    }
  }
  return [...ordered, ...held];
}

/** The index of the first question after another one; null if there is none. Almost always the last question is the other one. */
function findNextQuestion<T>(items: readonly T[], seq: number, getSeq: (item: T) => number | null): number | null {
  let next: number | null = null;
  for (let index = items.length - 1; index >= 0; index -= 1) {
    const item = items[index];
    const questionSeq = item === undefined ? null : getSeq(item);
    if (questionSeq === null) continue;
    if (questionSeq <= seq) break;
    next = index;
  }
  return next;
}

const isJobRow = (row: Row | undefined) => row?.kind === "event" && isAboutJob(row.event);
const isAboutJob = ({ kind }: LogEvent) => kind === "job_proposed" || kind === "job_confirmed" || kind === "job_rejected";
const isAnswer = (message: Message) => message.role === "assistant" || message.role === "tool";

function getQuestionSeq({ seq, message }: LogEvent): number | null {
  return message === null || isAnswer(message) ? null : seq;
}

/** The message that an event answers, or leaves without an answer. */
function getAnsweredSeq({ kind, message, facts }: LogEvent): number | null {
  if (kind === "message") return message !== null && isAnswer(message) ? (message.answers_seq ?? null) : null;
  const isOfTurn = kind === "turn_failed" || kind === "turn_interrupted" || kind === "job_proposed";
  return isOfTurn && typeof facts.input_seq === "number" ? facts.input_seq : null;
}

/**
 * How many turns were undone, by the last undo in a row: undos without a visible message between them are shown as one. Undos
 * that were redone do not count.
 */
function countUndoneTurns(events: readonly LogEvent[]): ReadonlyMap<number, number> {
  const redoneSeqs = new Set(events.filter((each) => each.kind === "redone").map((each) => each.facts.undo_seq));
  const counts = new Map<number, number>();
  let previousSeq: number | null = null;
  for (const { kind, seq, hidden, facts } of events) {
    if (kind === "message" && !hidden) previousSeq = null;
    if (kind !== "undone" || redoneSeqs.has(seq)) continue;
    const before: number = previousSeq === null ? 0 : (counts.get(previousSeq) ?? 0);
    if (previousSeq !== null) counts.delete(previousSeq);
    counts.set(seq, before + Number(facts.turns ?? 1));
    previousSeq = seq;
  }
  return counts;
}

/** Whether the reset policy ended a conversation. Otherwise its chat moved on, which the next conversation says. */
function isPolicyReason(reason: unknown): boolean {
  return reason === "idle" || reason === "daily";
}

function isShown(event: LogEvent, undoneTurns: ReadonlyMap<number, number>): boolean {
  if (event.kind === "message") return !event.hidden && event.message !== null;
  if (event.kind === "started") return SHOWN_START_REASONS.has(String(event.facts.reason));
  if (event.kind === "ended") return isPolicyReason(event.facts.reason);
  if (event.kind === "unreadable") return !event.hidden;
  if (event.kind === "erased") return event.facts.stored_kind === "message" && event.facts.was_hidden !== true;
  if (event.kind === "undone") return undoneTurns.has(event.seq);
  return SHOWN_EVENTS.has(event.kind);
}

function addEvent(rows: Row[], event: LogEvent, isLatest: boolean): void {
  const message = event.message;
  if (event.kind !== "message" || message === null) {
    rows.push({ kind: "event", key: `event-${event.seq}`, event, isLatest });
  } else if (isAnswer(message)) {
    addAnswer(rows, event, message);
  } else {
    rows.push({ kind: "message", key: `message-${event.seq}`, event });
  }
}

function addAnswer(rows: Row[], event: LogEvent, message: Message): void {
  const last = rows.at(-1);
  const key = message.answers_seq == null ? null : buildAnswerKey(message.answers_seq);
  const sentBy = message.sent_by ?? null;
  const isSent = sentBy !== null || (last?.kind === "answer" && last.sentBy !== null);
  if (last?.kind === "answer" && !isSent && (key === null || key === last.key)) {
    rows[rows.length - 1] = {
      ...last,
      seqs: [...last.seqs, event.seq],
      parts: addMessage(last.parts, message),
      interrupted: last.interrupted || message.interrupted === true,
      durationMs: getDuration(message) ?? last.durationMs,
    };
    return;
  }
  rows.push({
    kind: "answer",
    key: key ?? `answer-at-${event.seq}`,
    seqs: [event.seq],
    answers: message.answers_seq ?? null,
    at: event.at,
    parts: addMessage([], message),
    running: false,
    interrupted: message.interrupted === true,
    durationMs: getDuration(message),
    sentBy,
  });
}

/** The duration of the answer that a message ends. The duration of a tool call belongs to its tool part. */
function getDuration(message: Message): number | null {
  return message.role === "assistant" ? (message.duration_ms ?? null) : null;
}

const buildAnswerKey = (inputSeq: number) => `answer-${inputSeq}`;

function addMessage(parts: readonly Part[], message: Message): Part[] {
  if (message.role === "tool") {
    const durationMs = message.duration_ms ?? null;
    const result = { text: readText(message.content), failed: message.is_error === true, durationMs };
    return addResult(parts, message.tool_call_id ?? "", message.tool_name ?? "", result);
  }
  const next: Part[] = [...parts];
  if (message.reasoning) next.push({ kind: "reasoning", text: message.reasoning });
  const text = readText(message.content);
  if (text !== "") next.push({ kind: "text", text });
  for (const call of readToolCalls(message.tool_calls)) next.push(buildToolPart(call));
  return next;
}

function buildToolPart(call: { id: string; name: string; arguments: string }, startedAt: string | null = null): ToolPart {
  return { kind: "tool", ...call, result: null, failed: false, startedAt, durationMs: null };
}

function addResult(parts: readonly Part[], id: string, name: string, { text, ...outcome }: ToolOutcome): Part[] {
  const index = parts.findLastIndex((part) => part.kind === "tool" && part.id === id && part.result === null);
  const call = index < 0 ? undefined : parts[index];
  if (call?.kind !== "tool") {
    return [...parts, { ...buildToolPart({ id, name, arguments: "" }), result: text, ...outcome }];
  }
  return parts.with(index, { ...call, result: text, ...outcome });
}

/** Builds the parts of a running answer. */
export function buildParts(pieces: readonly DraftPiece[]): Part[] {
  let parts: Part[] = [];
  for (const piece of pieces) {
    if (piece.kind === "result") {
      const result = { text: piece.text ?? "", failed: piece.failed === true, durationMs: piece.duration_ms ?? null };
      parts = addResult(parts, piece.call_id ?? "", piece.name ?? "", result);
    } else if (piece.kind === "call") {
      const call = { id: piece.call_id ?? "", name: piece.name ?? "", arguments: piece.arguments ?? "" };
      parts.push(buildToolPart(call, piece.started_at ?? null));
    } else if (piece.text) {
      parts.push({ kind: piece.kind, text: piece.text });
    }
  }
  return parts;
}

function buildDraftRow(answers: number, parts: readonly Part[]): AnswerRow {
  return {
    kind: "answer",
    key: buildAnswerKey(answers),
    seqs: [],
    answers,
    at: null,
    parts,
    running: true,
    interrupted: false,
    durationMs: null,
    sentBy: null,
  };
}

/** Makes the keys of rows unique: with two equal keys, React would keep a row that no longer exists. */
export function makeKeysUnique(rows: readonly Row[]): Row[] {
  const seen = new Set<string>();
  return rows.map((row, index) => {
    const key = seen.has(row.key) ? `${row.key}-${index}` : row.key;
    seen.add(key);
    return key === row.key ? row : { ...row, key };
  });
}

/** The index of the row of a message, or of the next one; -1 if there is none. */
export function findRow(rows: readonly Row[], seq: number): number {
  const exact = rows.findIndex((row) => getSeqs(row).includes(seq));
  return exact >= 0 ? exact : rows.findIndex((row) => getSeqs(row).some((each) => each >= seq));
}

function getSeqs(row: Row): readonly number[] {
  if (row.kind === "answer") return row.seqs;
  return row.kind === "message" || row.kind === "event" ? [row.event.seq] : [];
}
