/**
 * Sends messages. An entry is stored in this browser before it is sent, and deleted from there once it has a receipt.
 *
 * Always true: an entry becomes one message, even if the connection is lost, the page is closed or reloaded, or several tabs
 * send it, because it always has the same key. Nothing is sent after its person has signed out.
 */
import * as calls from "../api/calls";
import { ApiError, describeError, describeRejection } from "../api/errors";
import type { Receipt, Schemas } from "../api/types";
import { storage } from "../lib/storage";
import { Store } from "../lib/store";
import { parseEntries, type OutboxEntry } from "./entries";

const RETRY_DELAY_MS = 3000;
const STORAGE_KEY = "outbox";

type SentListener = (entry: OutboxEntry, receipt: Receipt) => void;

export class Outbox {
  readonly entries: Store<readonly OutboxEntry[]>;
  #isSending = false;
  #isStopped = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly personId: string,
    private readonly onSent: SentListener,
  ) {
    this.entries = new Store<readonly OutboxEntry[]>(this.#readStored());
  }

  /** Starts sending. Returns a function that stops it; unsent entries stay stored. */
  start(): () => void {
    this.#isStopped = false;
    void this.flush();
    return () => {
      this.#isStopped = true;
      clearTimeout(this.#timer);
    };
  }

  add(entry: OutboxEntry): void {
    this.#change((entries) => [...entries, entry]);
    void this.flush();
  }

  /** Removes an entry that was rejected, or whose message is shown. */
  remove(key: string): void {
    this.#change((entries) => entries.filter((entry) => entry.key !== key));
  }

  /** Sends a rejected entry again, under another key: earlier versions of the server remember that they rejected it. */
  retry(key: string): void {
    this.#patch(key, { rejection: null, key: calls.createKey() });
    void this.flush();
  }

  /** Sends the waiting entries, in order within each conversation. Without a connection it stops, and tries again later. */
  async flush(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    clearTimeout(this.#timer);
    const stuck = new Set<string>(); // keys of entries that the server fails to handle; other conversations continue
    let hasLostConnection = false;
    try {
      for (let next = this.#findNext(stuck); next !== undefined; next = this.#findNext(stuck)) {
        if (!(await this.#trySend(next))) stuck.add(next.key);
      }
    } catch {
      hasLostConnection = true;
    } finally {
      this.#isSending = false;
    }
    if ((hasLostConnection || stuck.size > 0) && !this.#isStopped)
      this.#timer = setTimeout(() => void this.flush(), RETRY_DELAY_MS);
  }

  #findNext(stuck: ReadonlySet<string>): OutboxEntry | undefined {
    if (this.#isStopped) return undefined;
    const waiting = this.entries.value.filter((entry) => entry.seq === null && entry.rejection === null);
    const blocked = new Set(waiting.filter((entry) => stuck.has(entry.key)).map((entry) => entry.session ?? entry.key));
    return waiting.find((entry) => !blocked.has(entry.session ?? entry.key));
  }

  /** Returns whether the entry was sent; false: the server failed. */
  async #trySend(entry: OutboxEntry): Promise<boolean> {
    try {
      await this.#send(entry);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status >= 500) return false;
      throw error;
    }
  }

  /** Throws if it is unknown whether the message arrived. A rejection is final, and is stored in the entry. */
  async #send(entry: OutboxEntry): Promise<void> {
    try {
      const session = entry.session ?? (await this.#createSession(entry));
      const receipt = await calls.sendMessage(session, {
        content: buildContent(entry),
        key: entry.key,
        busy_policy: entry.busy ?? null,
        attachment_ids: entry.attachments.map((file) => file.id),
        ...(entry.reply && { reply_to: entry.reply }),
      });
      const sent = { ...entry, session };
      if (receipt.outcome === "rejected") this.#patch(entry.key, { rejection: describeRejection(receipt) });
      else if (receipt.seq === null) this.remove(entry.key);
      else this.#patch(entry.key, { seq: receipt.seq });
      this.onSent(sent, receipt);
    } catch (error) {
      if (!isFinal(error)) throw error;
      this.#patch(entry.key, { rejection: describeError(error) });
    }
  }

  async #createSession(entry: OutboxEntry): Promise<string> {
    const { id } = await calls.createSession({ ...entry.newSession, key: entry.key });
    this.#patch(entry.key, { session: id });
    return id;
  }

  #patch(key: string, changes: Partial<OutboxEntry>): void {
    this.#change((entries) => entries.map((entry) => (entry.key === key ? { ...entry, ...changes } : entry)));
  }

  /** Applies a change to the entries of this tab and, separately, to the stored ones: other tabs store theirs there too. */
  #change(change: (entries: readonly OutboxEntry[]) => readonly OutboxEntry[]): void {
    this.entries.update(change);
    const waiting = change(this.#readStored()).filter((entry) => entry.seq === null);
    storage.set(this.#storageKey, waiting.length === 0 ? null : JSON.stringify(waiting));
  }

  #readStored(): OutboxEntry[] {
    return parseEntries(storage.getJson(this.#storageKey));
  }

  get #storageKey(): string {
    return `${STORAGE_KEY}.${this.personId}`;
  }
}

/** Whether the server rejected the request, and would reject it again. */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status < 500 && error.status !== 401 && error.status !== 429;
}

/** The text of a message or, if it has a recording with its words, the text and the files as parts. */
function buildContent({ text, attachments }: OutboxEntry): Schemas["MessageIn"]["content"] {
  const voices = attachments.filter((file) => file.transcript !== undefined);
  if (voices.length === 0) return text;
  const parts = voices.map(({ id, transcript }) => ({ type: "attachment", id, transcript }));
  return text === "" ? parts : [{ type: "text", text }, ...parts];
}
