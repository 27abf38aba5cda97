/**
 * Sending: an entry is kept in this browser before it is sent, sent in order, and let go with its receipt.
 *
 * Always true: whatever was cut, closed or reloaded in between, and however many tabs send it, an entry becomes one
 * message, because its key goes with it each time. Nothing is sent once its person is here no more.
 */
import { ApiError } from "../api/client";
import * as calls from "../api/calls";
import type { Receipt, Session } from "../api/types";
import { keep, recallJson } from "../lib/keep";
import { Store } from "../lib/store";
import { moment } from "../lib/time";
import { whyNot, whyRefused } from "../words/refusals";
import { readEntries, type Entry } from "./entries";

const AGAIN = 3000; // milliseconds between two tries without a connection
const KEPT = "outbox";

type Sent = (entry: Entry, receipt: Receipt) => void;

export class Outbox {
  readonly entries: Store<readonly Entry[]>;
  #sending = false;
  #stopped = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly person: string,
    private readonly onSent: Sent,
  ) {
    this.entries = new Store<readonly Entry[]>(this.#kept());
  }

  /** Begin to send. Ends with the function it gives: what is not sent then is kept for the next time. */
  start(): () => void {
    this.#stopped = false;
    void this.flush();
    return () => {
      this.#stopped = true;
      clearTimeout(this.#timer);
    };
  }

  /** Send this, as soon as it can be. */
  add(entry: Entry): void {
    this.#change((entries) => [...entries, entry]);
    void this.flush();
  }

  /** Let an entry go: it was refused, or its message is shown. */
  drop(key: string): void {
    this.#change((entries) => entries.filter((entry) => entry.key !== key));
  }

  /** Try a refused entry again, under another key: of the first the server knows that it was refused. */
  again(key: string): void {
    this.#patch(key, { refused: null, key: calls.makeKey() });
    void this.flush();
  }

  /** Send what waits, in order in each conversation; stop where there is no connection, and come back. */
  async flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    clearTimeout(this.#timer);
    const stuck = new Set<string>(); // keys of entries with which the server fails: other conversations go on
    let isCut = false;
    try {
      for (let next = this.#next(stuck); next !== undefined; next = this.#next(stuck)) {
        if (!(await this.#isSent(next))) stuck.add(next.key);
      }
    } catch {
      isCut = true;
    } finally {
      this.#sending = false;
    }
    if ((isCut || stuck.size > 0) && !this.#stopped) this.#timer = setTimeout(() => void this.flush(), AGAIN);
  }

  #next(stuck: ReadonlySet<string>): Entry | undefined {
    if (this.#stopped) return undefined;
    const waiting = this.entries.value.filter((entry) => entry.seq === null && entry.refused === null);
    const held = new Set(waiting.filter((entry) => stuck.has(entry.key)).map((entry) => entry.session ?? entry.key));
    return waiting.find((entry) => !held.has(entry.session ?? entry.key));
  }

  async #isSent(entry: Entry): Promise<boolean> {
    try {
      await this.#send(entry);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status >= 500) return false;
      throw error;
    }
  }

  /** Throws where nobody knows whether it arrived; everything else is final. */
  async #send(entry: Entry): Promise<void> {
    try {
      const session = entry.session ?? (await this.#begun(entry));
      const receipt = await calls.sendMessage(session, {
        content: entry.text,
        key: entry.key,
        busy: entry.busy,
        attachments: entry.attachments.map((file) => file.id),
        reply: entry.reply,
      });
      const sent = { ...entry, session };
      if (receipt.outcome === "refused") this.#patch(entry.key, { refused: whyRefused(receipt) });
      else if (receipt.seq === null) this.drop(entry.key);
      else this.#patch(entry.key, { seq: receipt.seq });
      this.onSent(sent, receipt);
    } catch (error) {
      if (!isFinal(error)) throw error;
      this.#patch(entry.key, { refused: whyNot(error) });
    }
  }

  async #begun(entry: Entry): Promise<string> {
    const { id } = await created(entry);
    this.#patch(entry.key, { session: id });
    return id;
  }

  #patch(key: string, changes: Partial<Entry>): void {
    this.#change((entries) => entries.map((entry) => (entry.key === key ? { ...entry, ...changes } : entry)));
  }

  /** Changes what is here and what is kept, each by itself: other tabs keep theirs in the same place. */
  #change(change: (entries: readonly Entry[]) => readonly Entry[]): void {
    this.entries.update(change);
    const waiting = change(this.#kept()).filter((entry) => entry.seq === null);
    keep(this.#name, waiting.length === 0 ? null : JSON.stringify(waiting));
  }

  #kept(): Entry[] {
    return readEntries(recallJson(this.#name));
  }

  get #name(): string {
    return `${KEPT}.${this.person}`;
  }
}

/** A conversation for what is said; where its title is taken, with the moment behind it, and else without one. */
async function created({ begin: { title, ...begin }, at, key }: Entry): Promise<Session> {
  const titles = title === undefined ? [] : [title, `${title} · ${moment(at)}`.slice(0, 100)];
  for (const each of titles) {
    try {
      return await calls.createSession({ ...begin, key, title: each });
    } catch (error) {
      if (!isFinal(error)) throw error;
    }
  }
  return calls.createSession({ ...begin, key });
}

/** The server has refused it, and would do so again. */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status < 500 && error.status !== 401 && error.status !== 429;
}
