/**
 * What the page knows about conversations, and how the events of the live stream change it. Pure.
 *
 * Always true: the events of a conversation are in the order of their sequence numbers, each once, and without a gap between
 * the first and the last. Applying the same event twice changes nothing.
 */
import { replaceText } from "../api/messageContent";
import type { Delivery, DraftPiece, LiveItem, LogEvent, Session, TranscriptPage, Turn } from "../api/types";
import { describeNotice } from "../format/errors";

export interface Conversation {
  events: readonly LogEvent[];
  moreBefore: boolean;
  moreAfter: boolean;
  turns: readonly Turn[]; // queued and running ones
  drafts: Readonly<Record<string, readonly DraftPiece[]>>; // by turn
  deliveries: Readonly<Record<string, Delivery>>; // of its newest answers, by id
  notice: string | null; // what the agent reports about its work
  endNotices: readonly EndNotice[]; // what it has reported about the end of its last answer
  staleSeq: number | null; // the newest event that has shown or changed messages which therefore have to be loaded again
}

interface EndNotice {
  code: string;
  text: string;
}

export interface State {
  sessions: ReadonlyMap<string, Session>;
  conversations: Readonly<Record<string, Conversation>>;
}

export const EMPTY_STATE: State = { sessions: new Map(), conversations: {} };

const MAX_CONVERSATIONS = 30; // whose messages are kept; others are loaded again when they are opened

const EMPTY_CONVERSATION: Conversation = {
  events: [],
  moreBefore: false,
  moreAfter: false,
  turns: [],
  drafts: {},
  deliveries: {},
  notice: null,
  endNotices: [],
  staleSeq: null,
};

const END_NOTICE_CODES: readonly string[] = ["answer_limited", "cut_off", "budget_nearly_used"];

export function applyLiveItem(state: State, item: LiveItem): State {
  switch (item.name) {
    case "session":
      return addNewerSessions(state, [item.data]);
    case "session_removed":
      return removeSessions(state, [item.data.id]);
    case "event":
      return updateConversation(state, item.data.session_id, (conversation) => applyEvent(conversation, item.data.event));
    case "turn":
      return updateConversation(state, item.data.session_id, (conversation) => applyTurn(conversation, item.data.turn));
    case "draft":
      return updateConversation(state, item.data.session_id, (conversation) => applyDraft(conversation, item.data));
    case "notice":
      return updateConversation(state, item.data.session_id, (conversation) => applyNotice(conversation, item.data));
    case "delivery":
      return updateConversation(state, item.data.session_id, (conversation) => applyDelivery(conversation, item.data.delivery));
    case "lists_changed":
      return state;
  }
}

export function upsertSessions(state: State, sessions: readonly Session[]): State {
  const changed = sessions.filter((session) => !isSameSession(state.sessions.get(session.id), session));
  if (changed.length === 0) return state;
  const next = new Map(state.sessions);
  for (const session of changed) next.set(session.id, session);
  return { ...state, sessions: next };
}

/**
 * Adds sessions that the server has sent, unless a later state of them has already arrived: responses and two connections of
 * the stream can overtake each other. The earlier state would show an answer that has ended as running, for good.
 */
export function addNewerSessions(state: State, sessions: readonly Session[]): State {
  return upsertSessions(
    state,
    sessions.filter(({ id, last_seq }) => last_seq >= (state.sessions.get(id)?.last_seq ?? 0)),
  );
}

export function removeSessions(state: State, ids: readonly string[]): State {
  const sessions = new Map(state.sessions);
  const conversations = { ...state.conversations };
  for (const id of ids) {
    sessions.delete(id);
    // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- a record by id
    delete conversations[id];
  }
  return { sessions, conversations };
}

/** Replaces the events of a conversation by a page of its log. Events that arrived while the page was loading are kept. */
export function replaceTranscript(state: State, id: string, page: TranscriptPage): State {
  const before = state.conversations[id] ?? EMPTY_CONVERSATION;
  const replaced: Conversation = {
    ...before,
    events: page.events,
    moreBefore: page.has_more_before,
    moreAfter: page.has_more_after,
    staleSeq: null,
  };
  const since = before.moreAfter ? [] : before.events; // events of the page itself, or beyond a gap, change nothing
  const others = Object.entries(state.conversations).filter(([otherId]) => otherId !== id);
  const kept = Object.fromEntries(others.slice(1 - MAX_CONVERSATIONS));
  return { ...state, conversations: { ...kept, [id]: since.reduce(applyEvent, replaced) } };
}

/** Adds an earlier or a later page of the log to the events of a conversation. */
export function extendTranscript(state: State, id: string, page: TranscriptPage, side: "before" | "after"): State {
  return updateConversation(state, id, (conversation) => {
    const first = conversation.events[0]?.seq ?? Infinity;
    const last = conversation.events.at(-1)?.seq ?? 0;
    if (side === "before") {
      const earlier = page.events.filter((event) => event.seq < first);
      return { ...conversation, events: [...earlier, ...conversation.events], moreBefore: page.has_more_before };
    }
    const later = page.events.filter((event) => event.seq > last);
    return { ...conversation, events: [...conversation.events, ...later], moreAfter: page.has_more_after };
  });
}

/** Whether the loaded part of a conversation includes a message, or the place where it would be. */
export function includesSeq(conversation: Conversation, seq: number): boolean {
  const first = conversation.events[0]?.seq ?? 0;
  const last = conversation.events.at(-1)?.seq ?? 0;
  return (seq >= first || !conversation.moreBefore) && (seq <= last || !conversation.moreAfter);
}

/** Whether the agent is answering. The session or the turn may report it first. */
export function isAnswering({ sessions, conversations }: State, id: string): boolean {
  return sessions.get(id)?.running === true || (conversations[id]?.turns.some((turn) => turn.state === "running") ?? false);
}

/** Clears what only the live stream reports. Nothing is known about it while the conversation is not followed. */
export function clearLiveData(state: State, id: string): State {
  return updateConversation(state, id, (conversation) => ({ ...conversation, turns: [], drafts: {}, notice: null, endNotices: [] }));
}

function updateConversation(state: State, id: string, change: (conversation: Conversation) => Conversation): State {
  const conversation = state.conversations[id];
  if (conversation === undefined) return state;
  const changed = change(conversation);
  return changed === conversation ? state : { ...state, conversations: { ...state.conversations, [id]: changed } };
}

function applyEvent(conversation: Conversation, event: LogEvent): Conversation {
  const lastSeq = conversation.events.at(-1)?.seq ?? 0;
  if (event.seq <= lastSeq || event.hidden) return conversation; // already there
  if (conversation.moreAfter) return applyToOlderPart(conversation, event, lastSeq);
  const events = [...applyToMessages(removeUndone(conversation.events, event), event), event];
  const restoresMessages = event.kind === "redone" || event.kind === "rewritten" || event.kind === "erased" || isVersionChange(event);
  const staleSeq = restoresMessages ? event.seq : conversation.staleSeq;
  const answeredSeq = event.message?.role === "assistant" ? event.message.answers_seq : null;
  const drafts = answeredSeq == null ? conversation.drafts : removeDraftFor(conversation, answeredSeq);
  return { ...conversation, events, staleSeq, drafts };
}

/** Applies an event beyond a gap: it is not added, but it may change the older messages that are loaded. */
function applyToOlderPart(conversation: Conversation, event: LogEvent, lastSeq: number): Conversation {
  const { group, first_seq: firstSeq } = event.facts;
  const changedFrom = isVersionChange(event) ? group : firstSeq;
  const isChanged =
    event.kind === "redone" ||
    event.kind === "erased" ||
    ((event.kind === "undone" || event.kind === "rewritten" || isVersionChange(event)) && typeof changedFrom === "number" && changedFrom <= lastSeq);
  if (isChanged) return { ...conversation, staleSeq: event.seq };
  const events = applyToMessages(conversation.events, event);
  return events === conversation.events ? conversation : { ...conversation, events };
}

const isVersionChange = ({ kind }: LogEvent) => kind === "version_started" || kind === "version_chosen";

/** Removes the messages that an undo or a change of the version hides. Answers to earlier messages stay, and what a job or the agent has sent here since. */
function removeUndone(events: readonly LogEvent[], event: LogEvent): readonly LogEvent[] {
  const { first_seq: firstSeq, answers_kept_before: keptBefore } = event.facts;
  if (!(event.kind === "undone" || isVersionChange(event)) || typeof firstSeq !== "number") return events;
  return events.filter(({ seq, message }) => {
    const isAnswer = message?.role === "assistant" || message?.role === "tool";
    if (message === null || message.sent_by != null) return true;
    return seq < (isAnswer && typeof keptBefore === "number" ? keptBefore : firstSeq);
  });
}

/** Applies an edit or a deletion on the platform to the message that it concerns. */
function applyToMessages(events: readonly LogEvent[], { kind, facts }: LogEvent): readonly LogEvent[] {
  if (kind === "message_deleted") return events.filter(({ seq, message }) => message === null || seq !== facts.seq);
  const { text } = facts;
  if (kind !== "message_edited" || typeof text !== "string") return events;
  return events.map((event) => {
    if (event.seq !== facts.seq || event.message === null) return event;
    return { ...event, message: { ...event.message, content: replaceText(event.message.content, text), edited: true } };
  });
}

/** Removes the draft of an answer that is stored now. */
function removeDraftFor(conversation: Conversation, inputSeq: number): Conversation["drafts"] {
  const turn = conversation.turns.find((each) => each.input_seq === inputSeq);
  return turn === undefined ? conversation.drafts : omitKey(conversation.drafts, turn.id);
}

function applyTurn(conversation: Conversation, turn: Turn): Conversation {
  const others = conversation.turns.filter((each) => each.id !== turn.id);
  if (turn.state === "queued" || turn.state === "running") {
    const turns = [...others, turn].sort((a, b) => a.input_seq - b.input_seq);
    const isNew = turn.state === "running" && !conversation.turns.some(({ id, state }) => id === turn.id && state === "running");
    return { ...conversation, turns, endNotices: isNew ? [] : conversation.endNotices };
  }
  return { ...conversation, turns: others, drafts: omitKey(conversation.drafts, turn.id), notice: null };
}

function applyNotice(conversation: Conversation, item: Parameters<typeof describeNotice>[0]): Conversation {
  const text = describeNotice(item);
  const endNotices = [...conversation.endNotices, { code: item.code, text }];
  return { ...conversation, notice: text, endNotices: END_NOTICE_CODES.includes(item.code) ? endNotices : conversation.endNotices };
}

/** What is shown below the last answer: that the budget allows only short ones matters if it was cut off. */
export function describeEnd({ endNotices }: Conversation): string {
  const isCutOff = endNotices.some(({ code }) => code === "cut_off");
  return endNotices.flatMap(({ code, text }) => (code === "answer_limited" && !isCutOff ? [] : [text])).join(" ");
}

function applyDraft(
  conversation: Conversation,
  more: { turn_id: string; replaces_draft: boolean; pieces: DraftPiece[] },
): Conversation {
  const before = more.replaces_draft ? [] : (conversation.drafts[more.turn_id] ?? []);
  return { ...conversation, drafts: { ...conversation.drafts, [more.turn_id]: appendPieces(before, more.pieces) } };
}

function applyDelivery(conversation: Conversation, delivery: Delivery): Conversation {
  return { ...conversation, deliveries: { ...conversation.deliveries, [delivery.id]: delivery } };
}

/** Adds pieces to a draft. Text is appended to the last piece if that is of the same kind. */
export function appendPieces(draft: readonly DraftPiece[], more: readonly DraftPiece[]): DraftPiece[] {
  const pieces = [...draft];
  for (const piece of more) {
    const last = pieces.at(-1);
    const isText = piece.kind === "text" || piece.kind === "reasoning";
    if (isText && last?.kind === piece.kind) {
      pieces[pieces.length - 1] = { ...last, text: (last.text ?? "") + (piece.text ?? "") };
    } else {
      pieces.push(piece);
    }
  }
  return pieces;
}

function omitKey<T>(record: Readonly<Record<string, T>>, key: string): Readonly<Record<string, T>> {
  if (!(key in record)) return record;
  return Object.fromEntries(Object.entries(record).filter(([otherKey]) => otherKey !== key));
}

function isSameSession(a: Session | undefined, b: Session): boolean {
  return a !== undefined && JSON.stringify(a) === JSON.stringify(b);
}
