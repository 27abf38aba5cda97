/**
 * The centre of the page: what it knows, the line it is told by, and what it sends.
 *
 * There is one for each person who is signed in. Components look at its stores and call its methods; nothing else talks
 * to the server about conversations.
 */
import { ApiError } from "../api/client";
import * as calls from "../api/calls";
import type { LiveItem, Receipt, Session } from "../api/types";
import { Unfinished } from "../conversation/unfinished";
import { keep, recall } from "../lib/keep";
import { Store } from "../lib/store";
import type { Entry } from "../outbox/entries";
import { Outbox } from "../outbox/outbox";
import { isAnswered } from "../ready/answered";
import { Lists } from "./lists";
import { extended, holds, knowing, NOTHING, opened, told, unfollowed, without, type State } from "./state";
import { LiveStream, type Connection } from "./stream";

const PAGE = 60; // events fetched at once
const FAR = 400; // events after which what is known of a conversation is fetched anew instead of caught up with
const RESTING = 60_000; // milliseconds a hidden page keeps its line; browsers allow few of them for all their pages
const AGAIN = 2000; // milliseconds before a conversation that could not be fetched is tried again
const SINCE = "since";

/** What the gateway itself answered to a command. */
export interface Reply {
  id: string;
  text: string;
}

export class Center {
  readonly state = new Store<State>(NOTHING);
  readonly connection = new Store<Connection>("connecting");
  readonly replies = new Store<Readonly<Record<string, readonly Reply[]>>>({});
  readonly missing = new Store<ReadonlySet<string>>(new Set()); // conversations that are not there
  readonly everybodys = new Store(false);
  readonly lists: Lists;
  readonly outbox: Outbox;
  readonly unfinished: Unfinished;
  readonly since: string; // when this browser was first here
  readonly #here = new Date().toISOString(); // and this page
  #stream: LiveStream;
  #open: string | null = null;
  #openings = 0; // how often somebody has gone somewhere
  #loading = new Set<string>();
  #stopped = false;
  #resting: ReturnType<typeof setTimeout> | undefined;
  #openingAgain: ReturnType<typeof setTimeout> | undefined;
  #onBegun: (entry: Entry, session: string) => void = () => undefined;
  #onAnswered = new Set<(session: string) => void>();
  #keepsLine = false; // also while the page is hidden

  constructor(person: string) {
    this.since = recall(SINCE) ?? new Date().toISOString();
    keep(SINCE, this.since);
    this.lists = new Lists(this.state, (sessions) => this.#learnt(sessions), () => this.everybodys.value);
    this.outbox = new Outbox(person, (entry, receipt) => this.#sent(entry, receipt));
    this.unfinished = new Unfinished(person);
    this.#stream = new LiveStream({
      onItems: (items) => this.#told(items),
      onConnection: (connection) => this.connection.update(() => connection),
      onRefused: (error) => this.#refused(error),
    });
  }

  /** Begin to listen and to send. Ends with the function it gives, after which nothing is asked any more. */
  start(): () => void {
    this.#stopped = false;
    const onVisible = () => this.#shownOrHidden();
    const onOnline = () => {
      this.#stream.wake();
      void this.outbox.flush();
    };
    document.addEventListener("visibilitychange", onVisible);
    window.addEventListener("online", onOnline);
    if (this.#open === null) this.#follow();
    const stopSending = this.outbox.start();
    return () => {
      this.#stopped = true;
      document.removeEventListener("visibilitychange", onVisible);
      window.removeEventListener("online", onOnline);
      clearTimeout(this.#resting);
      clearTimeout(this.#openingAgain);
      stopSending();
      this.#stream.close();
    };
  }

  // -- reading

  /** Show a conversation, and follow it: its end, or what is around a message. */
  async open(id: string, seq: number | null): Promise<void> {
    const opening = ++this.#openings;
    const isWanted = () => opening === this.#openings; // nobody has gone elsewhere meanwhile
    this.#open = id;
    this.missing.update((missing) => (missing.has(id) ? new Set([...missing].filter((each) => each !== id)) : missing));
    this.state.update((state) => unfollowed(state, id));
    const known = this.state.value.conversations[id];
    const session = this.state.value.sessions.get(id);
    const last = known?.events.at(-1)?.seq ?? 0;
    const isNear = known !== undefined && !known.moreAfter && (session?.last_seq ?? 0) - last < FAR;
    const hasSeq = seq === null || (known !== undefined && holds(known, seq));
    try {
      if (session === undefined) await this.#fetchSession(id);
      if (seq === null ? !isNear : !hasSeq) await this.#fetch(id, seq === null ? {} : { around: seq }, isWanted);
    } catch (error) {
      if (isWanted()) this.#notThere(id, seq, error);
      return;
    }
    if (isWanted()) this.#follow();
  }

  /** No conversation is shown. */
  leave(): void {
    if (this.#open === null) return;
    this.#openings += 1;
    this.#open = null;
    this.#follow();
  }

  async loadEarlier(id: string): Promise<void> {
    const first = this.state.value.conversations[id]?.events[0]?.seq;
    if (first !== undefined) await this.#loadBeside(id, "before", first);
  }

  async loadLater(id: string): Promise<void> {
    const last = this.state.value.conversations[id]?.events.at(-1)?.seq;
    if (last === undefined) return;
    await this.#loadBeside(id, "after", last);
    if (this.state.value.conversations[id]?.moreAfter === false && this.#open === id) this.#follow();
  }

  /** Back from the middle of a conversation to its end. */
  async toLatest(id: string): Promise<void> {
    await this.#fetch(id, {});
    if (this.#open === id) this.#follow();
  }

  /** Somebody has seen a conversation as far as it goes. */
  async markRead(id: string): Promise<void> {
    const session = this.state.value.sessions.get(id);
    if (session === undefined || session.read_seq >= session.last_seq || this.everybodys.value) return;
    this.state.update((state) => knowing(state, [{ ...session, read_seq: session.last_seq }]));
    await calls.markRead(id, session.last_seq).catch(() => undefined); // the next look marks it again
  }

  /** Look at everybody's conversations, or at one's own. */
  lookAtAll(all: boolean): void {
    this.everybodys.update(() => all);
    this.lists.reset();
    this.state.update(() => NOTHING);
    if (this.#open === null) this.#follow();
    else void this.open(this.#open, null);
  }

  /** Be told when an answer has ended in any conversation; ends with the function it gives. */
  onAnswered(listener: (session: string) => void): () => void {
    this.#onAnswered.add(listener);
    return () => this.#onAnswered.delete(listener);
  }

  /** Listen also while the page is hidden, for others to be told. */
  keepLine(keeps: boolean): void {
    this.#keepsLine = keeps;
    this.#shownOrHidden();
  }

  // -- sending

  /** Be told when a conversation that was begun here has its id. */
  onBegun(listener: (entry: Entry, session: string) => void): void {
    this.#onBegun = listener;
  }

  /** Say something; in a new conversation where none is given. */
  say(said: Pick<Entry, "text" | "attachments" | "busy" | "reply" | "session" | "begin">): Entry {
    const events = said.session === null ? [] : (this.state.value.conversations[said.session]?.events ?? []);
    const entry: Entry = {
      ...said,
      key: calls.makeKey(),
      at: new Date().toISOString(),
      after: events.at(-1)?.seq ?? 0,
      seq: null,
      refused: null,
    };
    if (said.session !== null) this.#dismissReplies(said.session); // the talk has gone on
    this.outbox.add(entry);
    return entry;
  }

  /** What the gateway says about a command. */
  reply(session: string, text: string): void {
    const reply = { id: calls.makeKey(), text };
    this.replies.update((all) => ({ ...all, [session]: [...(all[session] ?? []), reply] }));
  }

  dismissReply(session: string, id: string): void {
    this.replies.update((all) => ({ ...all, [session]: (all[session] ?? []).filter((reply) => reply.id !== id) }));
  }

  #dismissReplies(session: string): void {
    this.replies.update((all) => (all[session] === undefined ? all : { ...all, [session]: [] }));
  }

  // -- arranging

  /** A session as the server has just given it; what was read before stays read. */
  keepSession(session: Session): void {
    const before = this.state.value.sessions.get(session.id);
    const wasRead = before !== undefined && before.read_seq >= before.last_seq;
    this.state.update((state) => knowing(state, [session]));
    if (wasRead) void this.markRead(session.id);
  }

  forget(ids: readonly string[]): void {
    this.state.update((state) => without(state, ids));
  }

  #sent(entry: Entry, receipt: Receipt): void {
    const session = receipt.session_id ?? entry.session;
    if (session === null) return;
    if (receipt.reply !== null && receipt.outcome !== "refused") this.reply(session, receipt.reply);
    if (receipt.outcome === "command") this.unfinished.putBack(session, entry.attachments); // a command takes no files
    this.#onBegun(entry, session);
  }

  #told(items: LiveItem[]): void {
    const answered: string[] = [];
    this.state.update((known) =>
      items.reduce((state, item) => {
        const isEnd = item.name === "session" && isAnswered(state.sessions.get(item.data.id), item.data, this.#here);
        if (isEnd) answered.push(item.data.id);
        return told(state, item);
      }, known),
    );
    this.#tell(answered);
    for (const item of items) {
      if (item.name === "lists") void this.lists.refresh();
      if (item.name === "gone" && item.data.id === this.#open) this.#missed(item.data.id);
    }
    this.#clearOutbox();
    const id = this.#open;
    if (id !== null && this.state.value.conversations[id]?.stale) void this.#fetchAgain(id);
  }

  /** Sessions from a list that was fetched, as after a cut: answers may have ended meanwhile. */
  #learnt(sessions: readonly Session[]): void {
    const before = this.state.value.sessions;
    const answered = sessions.filter((each) => isAnswered(before.get(each.id), each, this.#here));
    this.state.update((state) => knowing(state, sessions));
    this.#tell(answered.map(({ id }) => id));
  }

  #tell(answered: readonly string[]): void {
    for (const id of answered) for (const listener of this.#onAnswered) listener(id);
  }

  /** Entries whose messages have come are let go. */
  #clearOutbox(): void {
    for (const entry of this.outbox.entries.value) {
      if (entry.seq === null || entry.session === null) continue;
      const last = this.state.value.conversations[entry.session]?.events.at(-1)?.seq ?? 0;
      if (last >= entry.seq) this.outbox.drop(entry.key);
    }
  }

  #follow(): void {
    if (this.#stopped) return; // what is shown may leave after its person has
    const id = this.#open;
    const known = id === null ? undefined : this.state.value.conversations[id];
    const after = known === undefined || known.moreAfter ? null : (known.events.at(-1)?.seq ?? 0);
    this.#stream.follow({ follow: id === null ? null : { id, after }, all: this.everybodys.value });
  }

  async #fetchSession(id: string): Promise<void> {
    const session = await calls.getSession(id, this.everybodys.value);
    this.state.update((state) => knowing(state, [session]));
  }

  async #fetch(id: string, place: calls.Place, isWanted = () => true): Promise<void> {
    const page = await calls.readMessages(id, { ...place, limit: PAGE }, this.everybodys.value);
    if (!isWanted()) return;
    this.state.update((state) => opened(state, id, page));
    this.#clearOutbox();
  }

  /** Something came back that nobody sent: the end of the conversation as it is now. */
  async #fetchAgain(id: string): Promise<void> {
    const name = `${id} again`;
    const isStale = () => this.state.value.conversations[id]?.stale === true;
    if (this.#loading.has(name)) return;
    this.#loading.add(name);
    try {
      while (isStale()) await this.#fetch(id, {}, isStale);
    } catch {
      // It stays stale, and is tried with the next news.
    } finally {
      this.#loading.delete(name);
    }
  }

  async #loadBeside(id: string, side: "before" | "after", seq: number): Promise<void> {
    const name = `${id} ${side}`;
    if (this.#loading.has(name)) return;
    this.#loading.add(name);
    try {
      const page = await calls.readMessages(id, { [side]: seq, limit: PAGE }, this.everybodys.value);
      this.state.update((state) => extended(state, id, page, side));
    } finally {
      this.#loading.delete(name);
    }
  }

  #notThere(id: string, seq: number | null, error: unknown): void {
    if (error instanceof ApiError && (error.status === 404 || error.status === 422)) this.#missed(id);
    else if (!this.#stopped) this.#openingAgain = setTimeout(() => this.#open === id && void this.open(id, seq), AGAIN);
  }

  #missed(id: string): void {
    this.forget([id]);
    this.missing.update((missing) => new Set([...missing, id]));
    this.#open = null;
    this.#follow();
  }

  #refused(error: ApiError): void {
    if (error.status !== 401 && this.#open !== null) this.#missed(this.#open);
  }

  #shownOrHidden(): void {
    clearTimeout(this.#resting);
    if (document.visibilityState === "visible" || this.#keepsLine) this.#stream.wake();
    else this.#resting = setTimeout(() => this.#stream.rest(), RESTING);
  }
}
