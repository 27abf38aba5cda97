/**
 * Everything the page knows of conversations, and how what it is told changes that. Pure.
 *
 * Always true: the events of a conversation are in the order of their numbers, each once, and without a gap between the
 * first and the last. Being told the same thing twice changes nothing.
 */
import type { Delivery, Events, LiveItem, LogEvent, Piece, Session, Turn } from "../api/types";

export interface Conversation {
  events: readonly LogEvent[];
  moreBefore: boolean;
  moreAfter: boolean;
  turns: readonly Turn[]; // those that wait or run
  drafts: Readonly<Record<string, readonly Piece[]>>; // by turn
  deliveries: Readonly<Record<string, Delivery>>; // of its newest answers, where they are sent somewhere
  notice: string | null; // what the agent says of itself while it works
  stale: boolean; // something came back that is not among the events
}

export interface State {
  sessions: ReadonlyMap<string, Session>;
  conversations: Readonly<Record<string, Conversation>>;
}

export const NOTHING: State = { sessions: new Map(), conversations: {} };

const REMEMBERED = 30; // conversations of which the page knows what was said; others are fetched when they are opened again

const EMPTY: Conversation = {
  events: [],
  moreBefore: false,
  moreAfter: false,
  turns: [],
  drafts: {},
  deliveries: {},
  notice: null,
  stale: false,
};

/** What the live stream tells. */
export function told(state: State, item: LiveItem): State {
  switch (item.name) {
    case "session":
      return knowing(state, [item.data]);
    case "gone":
      return without(state, [item.data.id]);
    case "event":
      return within(state, item.data.session_id, (known) => happened(known, item.data.event));
    case "turn":
      return within(state, item.data.session_id, (known) => turned(known, item.data.turn));
    case "draft":
      return within(state, item.data.session_id, (known) => drafted(known, item.data));
    case "notice":
      return within(state, item.data.session_id, (known) => ({ ...known, notice: item.data.text }));
    case "delivery":
      return within(state, item.data.session_id, (known) => delivered(known, item.data.delivery));
    case "lists":
      return state;
  }
}

/** Sessions as they stand now. */
export function knowing(state: State, sessions: readonly Session[]): State {
  const changed = sessions.filter((each) => !sameSession(state.sessions.get(each.id), each));
  if (changed.length === 0) return state;
  const known = new Map(state.sessions);
  for (const each of changed) known.set(each.id, each);
  return { ...state, sessions: known };
}

/** Sessions that are there no more. */
export function without(state: State, ids: readonly string[]): State {
  const sessions = new Map(state.sessions);
  const conversations = { ...state.conversations };
  for (const id of ids) {
    sessions.delete(id);
    // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- a record by id
    delete conversations[id];
  }
  return { sessions, conversations };
}

/** A part of a log that stands for all that was known of the conversation, but for what was told while it was on its way. */
export function opened(state: State, id: string, page: Events): State {
  const before = state.conversations[id] ?? EMPTY;
  const fresh: Conversation = {
    ...before,
    events: page.events,
    moreBefore: page.more_before,
    moreAfter: page.more_after,
    stale: false,
  };
  const since = before.moreAfter ? [] : before.events; // what is known already, or beyond this part, changes nothing
  const others = Object.entries(state.conversations).filter(([each]) => each !== id);
  const remembered = Object.fromEntries(others.slice(1 - REMEMBERED));
  return { ...state, conversations: { ...remembered, [id]: since.reduce(happened, fresh) } };
}

/** An earlier or a later part of a log, next to what is known. */
export function extended(state: State, id: string, page: Events, side: "before" | "after"): State {
  return within(state, id, (known) => {
    const first = known.events[0]?.seq ?? Infinity;
    const last = known.events.at(-1)?.seq ?? 0;
    if (side === "before") {
      const earlier = page.events.filter((event) => event.seq < first);
      return { ...known, events: [...earlier, ...known.events], moreBefore: page.more_before };
    }
    const later = page.events.filter((event) => event.seq > last);
    return { ...known, events: [...known.events, ...later], moreAfter: page.more_after };
  });
}

/** Whether what is known of a conversation reaches to a message, or to where it would be. */
export function holds(known: Conversation, seq: number): boolean {
  const first = known.events[0]?.seq ?? 0;
  const last = known.events.at(-1)?.seq ?? 0;
  return (seq >= first || !known.moreBefore) && (seq <= last || !known.moreAfter);
}

/** Whether an answer is being given, by whatever tells of it first. */
export function isAnswering({ sessions, conversations }: State, id: string): boolean {
  return sessions.get(id)?.running === true || (conversations[id]?.turns.some((turn) => turn.state === "running") ?? false);
}

/** Nobody tells us of this conversation any more: what goes on in it is not known. */
export function unfollowed(state: State, id: string): State {
  return within(state, id, (known) => ({ ...known, turns: [], drafts: {}, notice: null }));
}

function within(state: State, id: string, change: (known: Conversation) => Conversation): State {
  const known = state.conversations[id];
  if (known === undefined) return state;
  const changed = change(known);
  return changed === known ? state : { ...state, conversations: { ...state.conversations, [id]: changed } };
}

function happened(known: Conversation, event: LogEvent): Conversation {
  const last = known.events.at(-1)?.seq ?? 0;
  if (event.seq <= last || known.moreAfter) return known; // known, or beyond what is shown
  if (event.hidden) return known;
  const events = [...hiding(known.events, event), event];
  const stale = known.stale || event.kind === "redone" || event.kind === "rewritten";
  const answered = event.message?.role === "assistant" ? event.message.answers : null;
  const drafts = answered == null ? known.drafts : withoutDraftFor(known, answered);
  return { ...known, events, stale, drafts };
}

/** What remains to be seen after an undo. */
function hiding(events: readonly LogEvent[], event: LogEvent): readonly LogEvent[] {
  const first = event.facts.first;
  if (event.kind !== "undone" || typeof first !== "number") return events;
  return events.filter((each) => each.kind !== "message" || each.seq < first);
}

/** The stored answer takes the place of what was drafted. */
function withoutDraftFor(known: Conversation, inputSeq: number): Conversation["drafts"] {
  const turn = known.turns.find((each) => each.input_seq === inputSeq);
  return turn === undefined ? known.drafts : withoutKey(known.drafts, turn.id);
}

function turned(known: Conversation, turn: Turn): Conversation {
  const others = known.turns.filter((each) => each.id !== turn.id);
  if (turn.state === "queued" || turn.state === "running") {
    const turns = [...others, turn].sort((a, b) => a.input_seq - b.input_seq);
    return { ...known, turns };
  }
  return { ...known, turns: others, drafts: withoutKey(known.drafts, turn.id), notice: null };
}

function drafted(known: Conversation, more: { turn_id: string; afresh: boolean; pieces: Piece[] }): Conversation {
  const before = more.afresh ? [] : (known.drafts[more.turn_id] ?? []);
  return { ...known, drafts: { ...known.drafts, [more.turn_id]: grown(before, more.pieces) } };
}

/** How a delivery stands now. */
function delivered(known: Conversation, delivery: Delivery): Conversation {
  return { ...known, deliveries: { ...known.deliveries, [delivery.id]: delivery } };
}

/** A draft with more of it: words go on in the last piece if it is of their kind. */
export function grown(draft: readonly Piece[], more: readonly Piece[]): Piece[] {
  const pieces = [...draft];
  for (const piece of more) {
    const last = pieces.at(-1);
    const isWords = piece.kind === "text" || piece.kind === "reasoning";
    if (isWords && last?.kind === piece.kind) {
      pieces[pieces.length - 1] = { ...last, text: (last.text ?? "") + (piece.text ?? "") };
    } else {
      pieces.push(piece);
    }
  }
  return pieces;
}

function withoutKey<T>(record: Readonly<Record<string, T>>, key: string): Readonly<Record<string, T>> {
  if (!(key in record)) return record;
  return Object.fromEntries(Object.entries(record).filter(([each]) => each !== key));
}

function sameSession(a: Session | undefined, b: Session): boolean {
  return a !== undefined && JSON.stringify(a) === JSON.stringify(b);
}
