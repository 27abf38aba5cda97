/**
 * The state of all conversations, kept up to date by the live stream, and everything that is sent.
 *
 * There is one client for each person who signs in. Components read its stores and call its methods.
 */
import * as calls from "../api/calls";
import { download } from "../api/download";
import { ApiError } from "../api/errors";
import type { LiveItem, Receipt, Session } from "../api/types";
import { storage } from "../lib/storage";
import { Store } from "../lib/store";
import { ComposerDrafts } from "../outbox/composerDrafts";
import type { OutboxEntry } from "../outbox/entries";
import { Outbox } from "../outbox/outbox";
import { hasAnswerEnded } from "./answerEnd";
import { SessionLists } from "./sessionLists";
import {
  addNewerSessions,
  applyLiveItem,
  clearLiveData,
  EMPTY_STATE,
  extendTranscript,
  includesSeq,
  removeSessions,
  replaceTranscript,
  upsertSessions,
  type Conversation,
  type State,
} from "./state";
import { LiveStream, type Connection } from "./stream";

const PAGE_SIZE = 60; // events
const MAX_PAGE_SIZE = 200; // that the server returns
const MAX_MISSED_EVENTS = 400; // with more, a conversation is loaded again instead of catching up
const HIDDEN_STREAM_MS = 60_000; // how long a hidden page keeps its stream; browsers allow few streams for all tabs of a site
const OPEN_RETRY_MS = 2000;
const FIRST_VISIT_KEY = "first-visit";

/** The gateway's reply to a command. */
export interface CommandReply {
  id: string;
  text: string;
}

export class LiveClient {
  readonly state = new Store<State>(EMPTY_STATE);
  readonly connection = new Store<Connection>("connecting");
  readonly commandReplies = new Store<Readonly<Record<string, readonly CommandReply[]>>>({});
  readonly missingSessions = new Store<ReadonlySet<string>>(new Set()); // not found or deleted
  readonly unreachableSession = new Store<string | null>(null); // it cannot be loaded at the moment, and is tried again
  readonly showsAll = new Store(false); // an owner can see everybody's conversations
  readonly lists: SessionLists;
  readonly outbox: Outbox;
  readonly composerDrafts: ComposerDrafts;
  readonly firstVisitAt: string; // of this browser; older messages do not count as unread
  readonly #openedAt = new Date().toISOString();
  #stream: LiveStream;
  #openId: string | null = null;
  #openCount = 0; // tells whether another conversation was opened meanwhile
  #loading = new Set<string>();
  #isStopped = false;
  #hideTimer: ReturnType<typeof setTimeout> | undefined;
  #openRetryTimer: ReturnType<typeof setTimeout> | undefined;
  #onSessionCreated: (entry: OutboxEntry, sessionId: string) => void = () => undefined;
  #answerEndListeners = new Set<(sessionId: string) => void>();
  #keepsStreamOpen = false; // even while the page is hidden

  constructor(personId: string) {
    this.firstVisitAt = storage.get(FIRST_VISIT_KEY) ?? new Date().toISOString();
    storage.set(FIRST_VISIT_KEY, this.firstVisitAt);
    this.lists = new SessionLists(
      this.state,
      (sessions) => this.#storeLoadedSessions(sessions),
      () => this.showsAll.value,
    );
    this.outbox = new Outbox(personId, (entry, receipt) => this.#handleReceipt(entry, receipt));
    this.composerDrafts = new ComposerDrafts(personId);
    this.#stream = new LiveStream({
      onItems: (items) => this.#applyItems(items),
      onConnection: (connection) => this.connection.update(() => connection),
      onRejected: (error) => this.#handleRejection(error),
    });
  }

  /** Starts the stream and the outbox. Returns a function that stops both; no request is made after it. */
  start(): () => void {
    this.#isStopped = false;
    const onVisible = () => this.#updateStream();
    const onOnline = () => {
      this.#stream.wake();
      void this.outbox.flush();
    };
    document.addEventListener("visibilitychange", onVisible);
    window.addEventListener("online", onOnline);
    if (this.#openId === null) this.#follow();
    const stopSending = this.outbox.start();
    return () => {
      this.#isStopped = true;
      document.removeEventListener("visibilitychange", onVisible);
      window.removeEventListener("online", onOnline);
      clearTimeout(this.#hideTimer);
      clearTimeout(this.#openRetryTimer);
      stopSending();
      this.#stream.close();
    };
  }

  // -- conversations

  /** Loads the end of a conversation, or the messages around `seq`, and follows it on the stream. */
  async openSession(id: string, seq: number | null): Promise<void> {
    const openNumber = ++this.#openCount;
    const isCurrent = () => openNumber === this.#openCount; // no other conversation was opened meanwhile
    this.#openId = id;
    this.unreachableSession.update((unreachable) => (unreachable === id ? id : null));
    this.missingSessions.update((missing) => (missing.has(id) ? new Set([...missing].filter((each) => each !== id)) : missing));
    this.state.update((state) => clearLiveData(state, id));
    const conversation = this.state.value.conversations[id];
    const session = this.state.value.sessions.get(id);
    const last = conversation?.events.at(-1)?.seq ?? 0;
    const isNear = conversation !== undefined && !conversation.moreAfter && (session?.last_seq ?? 0) - last < MAX_MISSED_EVENTS;
    const hasSeq = seq === null || (conversation !== undefined && includesSeq(conversation, seq));
    try {
      if (session === undefined) await this.#loadSession(id);
      if (seq === null ? !isNear : !hasSeq) await this.#loadTranscript(id, seq === null ? {} : { around: seq }, isCurrent);
    } catch (error) {
      if (isCurrent()) this.#handleOpenError(id, seq, error);
      return;
    }
    if (!isCurrent()) return;
    this.unreachableSession.update(() => null);
    this.#follow();
  }

  closeSession(): void {
    if (this.#openId === null) return;
    this.#openCount += 1;
    this.#openId = null;
    this.#follow();
  }

  async loadEarlier(id: string): Promise<void> {
    const first = this.state.value.conversations[id]?.events[0]?.seq;
    if (first !== undefined) await this.#loadAdjacent(id, "before", first);
  }

  async loadLater(id: string): Promise<void> {
    const last = this.state.value.conversations[id]?.events.at(-1)?.seq;
    if (last === undefined) return;
    await this.#loadAdjacent(id, "after", last);
    if (this.state.value.conversations[id]?.moreAfter === false && this.#openId === id) this.#follow();
  }

  /** Goes from the middle of a conversation to its end. */
  async loadLatest(id: string): Promise<void> {
    await this.#loadTranscript(id, {});
    if (this.#openId === id) this.#follow();
  }

  /** Marks a conversation as read up to its end. */
  async markRead(id: string): Promise<void> {
    const session = this.state.value.sessions.get(id);
    if (session === undefined || session.read_seq >= session.last_seq || this.showsAll.value) return;
    this.state.update((state) => upsertSessions(state, [{ ...session, read_seq: session.last_seq }]));
    await calls.markRead(id, session.last_seq).catch(() => undefined); // it is marked again the next time
  }

  /** Switches between everybody's conversations and the person's own. */
  setShowsAll(all: boolean): void {
    this.showsAll.update(() => all);
    this.lists.reset();
    this.state.update(() => EMPTY_STATE);
    if (this.#openId === null) this.#follow();
    else void this.openSession(this.#openId, null);
  }

  /** Calls `listener` when an answer has ended in any conversation. Returns a function that removes it. */
  onAnswerEnd(listener: (sessionId: string) => void): () => void {
    this.#answerEndListeners.add(listener);
    return () => this.#answerEndListeners.delete(listener);
  }

  /** Keeps the stream open while the page is hidden, so that this tab can show notifications. */
  keepStreamOpen(isKept: boolean): void {
    this.#keepsStreamOpen = isKept;
    this.#updateStream();
  }

  // -- sending

  /** Calls `listener` with the session that a message was stored in. A new conversation gets its id that way. */
  onSessionCreated(listener: (entry: OutboxEntry, sessionId: string) => void): void {
    this.#onSessionCreated = listener;
  }

  /** Sends a message; without a session, in a new conversation. */
  sendMessage(message: Pick<OutboxEntry, "text" | "attachments" | "busy" | "reply" | "session" | "newSession">): OutboxEntry {
    const { sessions, conversations } = this.state.value;
    const id = message.session ?? "";
    const entry: OutboxEntry = {
      ...message,
      key: calls.createKey(),
      at: new Date().toISOString(),
      afterSeq: conversations[id]?.events.at(-1)?.seq ?? sessions.get(id)?.last_seq ?? 0,
      seq: null,
      rejection: null,
    };
    if (message.session !== null) this.#dismissReplies(message.session); // the conversation continues
    this.outbox.add(entry);
    return entry;
  }

  addCommandReply(sessionId: string, text: string): void {
    const reply = { id: calls.createKey(), text };
    this.commandReplies.update((all) => ({ ...all, [sessionId]: [...(all[sessionId] ?? []), reply] }));
  }

  dismissCommandReply(sessionId: string, id: string): void {
    this.commandReplies.update((all) => ({ ...all, [sessionId]: (all[sessionId] ?? []).filter((reply) => reply.id !== id) }));
  }

  #dismissReplies(sessionId: string): void {
    this.commandReplies.update((all) => (all[sessionId] === undefined ? all : { ...all, [sessionId]: [] }));
  }

  // -- sessions

  /** Stores a session that the server has just returned. If it was read before, it stays read. */
  storeSession(session: Session): void {
    const before = this.state.value.sessions.get(session.id);
    const wasRead = before !== undefined && before.read_seq >= before.last_seq;
    this.state.update((state) => addNewerSessions(state, [session]));
    if (wasRead) void this.markRead(session.id);
  }

  removeSessions(ids: readonly string[]): void {
    this.state.update((state) => removeSessions(state, ids));
  }

  #handleReceipt(entry: OutboxEntry, receipt: Receipt): void {
    const sessionId = receipt.session_id ?? entry.session;
    if (sessionId === null) return;
    if (receipt.reply !== null && receipt.outcome !== "rejected") this.addCommandReply(sessionId, receipt.reply);
    if (receipt.outcome === "command" && typeof receipt.facts.download === "string") download(receipt.facts.download); // of /export
    if (receipt.outcome === "command") this.composerDrafts.restoreFiles(sessionId, entry.attachments); // commands do not accept files
    this.#onSessionCreated(entry, sessionId);
  }

  #applyItems(items: LiveItem[]): void {
    const answeredIds: string[] = [];
    this.state.update((previous) =>
      items.reduce((state, item) => {
        const hasEnded = item.name === "session" && hasAnswerEnded(state.sessions.get(item.data.id), item.data, this.#openedAt);
        if (hasEnded) answeredIds.push(item.data.id);
        return applyLiveItem(state, item);
      }, previous),
    );
    this.#notifyAnswerEnds(answeredIds);
    for (const item of items) {
      if (item.name === "lists_changed") void this.lists.refresh();
      if (item.name === "session_removed" && item.data.id === this.#openId) this.#handleMissing(item.data.id);
    }
    this.#removeArrivedEntries();
    const id = this.#openId;
    if (id !== null && this.state.value.conversations[id]?.staleSeq != null) void this.#reloadStale(id);
  }

  /** Stores the sessions of a list. After a lost connection, answers may have ended meanwhile. */
  #storeLoadedSessions(sessions: readonly Session[]): void {
    const before = this.state.value.sessions;
    const answeredSessions = sessions.filter((each) => hasAnswerEnded(before.get(each.id), each, this.#openedAt));
    this.state.update((state) => addNewerSessions(state, sessions));
    this.#notifyAnswerEnds(answeredSessions.map(({ id }) => id));
  }

  #notifyAnswerEnds(answeredIds: readonly string[]): void {
    for (const id of answeredIds) for (const listener of this.#answerEndListeners) listener(id);
  }

  #removeArrivedEntries(): void {
    for (const entry of this.outbox.entries.value) {
      if (entry.seq === null || entry.session === null) continue;
      const last = this.state.value.conversations[entry.session]?.events.at(-1)?.seq ?? 0;
      if (last >= entry.seq) this.outbox.remove(entry.key);
    }
  }

  #follow(): void {
    if (this.#isStopped) return; // components are unmounted after the client was stopped
    const id = this.#openId;
    const conversation = id === null ? undefined : this.state.value.conversations[id];
    const after = conversation === undefined || conversation.moreAfter ? null : (conversation.events.at(-1)?.seq ?? 0);
    this.#stream.follow({ follow: id === null ? null : { id, after }, all: this.showsAll.value });
  }

  async #loadSession(id: string): Promise<void> {
    const session = await calls.getSession(id, this.showsAll.value);
    this.state.update((state) => addNewerSessions(state, [session]));
  }

  async #loadTranscript(id: string, range: calls.TranscriptRange, isCurrent = () => true): Promise<void> {
    const page = await calls.listMessages(id, { ...range, limit: PAGE_SIZE }, this.showsAll.value);
    if (!isCurrent()) return;
    this.state.update((state) => replaceTranscript(state, id, page));
    this.#removeArrivedEntries();
  }

  /** Loads the shown part of a conversation again after messages were restored: its end, or an older part. */
  async #reloadStale(id: string): Promise<void> {
    const key = `${id} reload`;
    if (this.#loading.has(key)) return;
    this.#loading.add(key);
    try {
      for (let conversation = this.state.value.conversations[id]; conversation?.staleSeq != null; conversation = this.state.value.conversations[id]) {
        const { staleSeq, moreAfter } = conversation;
        const isCurrent = () => this.state.value.conversations[id]?.staleSeq === staleSeq; // nothing else was restored meanwhile
        if (moreAfter) await this.#reloadOlderPart(id, conversation, isCurrent);
        else await this.#loadTranscript(id, {}, isCurrent);
      }
    } catch {
      // It stays stale, and the next event tries again.
    } finally {
      this.#loading.delete(key);
    }
  }

  /** Loads an older part again, from the same beginning. If it was part of another version, the end is loaded instead. */
  async #reloadOlderPart(id: string, { events }: Conversation, isCurrent: () => boolean): Promise<void> {
    const limit = Math.min(Math.max(events.length, PAGE_SIZE), MAX_PAGE_SIZE);
    const page = await calls.listMessages(id, { after: (events[0]?.seq ?? 1) - 1, limit }, this.showsAll.value);
    if (!isCurrent()) return;
    if (page.events.length === 0) await this.#loadTranscript(id, {}, isCurrent);
    else this.state.update((state) => replaceTranscript(state, id, page));
    if (this.state.value.conversations[id]?.moreAfter === false && this.#openId === id) this.#follow();
  }

  async #loadAdjacent(id: string, side: "before" | "after", seq: number): Promise<void> {
    const key = `${id} ${side}`;
    if (this.#loading.has(key)) return;
    this.#loading.add(key);
    try {
      const page = await calls.listMessages(id, { [side]: seq, limit: PAGE_SIZE }, this.showsAll.value);
      this.state.update((state) => extendTranscript(state, id, page, side));
    } finally {
      this.#loading.delete(key);
    }
  }

  #handleOpenError(id: string, seq: number | null, error: unknown): void {
    if (error instanceof ApiError && (error.status === 404 || error.status === 422)) this.#handleMissing(id);
    else if (!this.#isStopped) {
      this.unreachableSession.update(() => id);
      this.#openRetryTimer = setTimeout(() => this.#openId === id && void this.openSession(id, seq), OPEN_RETRY_MS);
    }
  }

  #handleMissing(id: string): void {
    this.removeSessions([id]);
    this.missingSessions.update((missing) => new Set([...missing, id]));
    this.#openId = null;
    this.#follow();
  }

  #handleRejection(error: ApiError): void {
    if (error.status !== 401 && this.#openId !== null) this.#handleMissing(this.#openId);
  }

  #updateStream(): void {
    clearTimeout(this.#hideTimer);
    if (document.visibilityState === "visible" || this.#keepsStreamOpen) this.#stream.wake();
    else this.#hideTimer = setTimeout(() => this.#stream.pause(), HIDDEN_STREAM_MS);
  }
}
