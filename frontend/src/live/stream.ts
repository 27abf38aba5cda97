/**
 * The live stream: one connection that is opened, watched, and opened again when it ends.
 *
 * Always true: to follow another conversation, a new connection is opened before the old one is closed, and what the server had
 * already sent on the old one is still read, so no event is lost between the two. A connection that no such old one covers sends
 * its cursor, empty at first: it brings the events that were missed, and `lists_changed` for lists loaded before it was ready.
 */
import { ApiError } from "../api/errors";
import { openEventStream } from "../api/http";
import type { LiveItem } from "../api/types";
import { SseParser } from "./sseParser";

export type Connection = "connecting" | "live" | "reconnecting";

interface FollowTarget {
  id: string;
  after: number | null; // the last event that the page has; null: only new events
}

interface Subscription {
  follow: FollowTarget | null;
  all: boolean;
}

interface StreamListener {
  onItems: (items: LiveItem[]) => void;
  onConnection: (state: Connection) => void;
  onRejected: (error: ApiError) => void;
}

const MAX_SILENCE_MS = 40_000; // after it the connection counts as lost; heartbeats come every 15 s
const LAST_ITEMS_MS = 2000; // how long a replaced connection is read on: what was sent on it may still be on its way
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 15_000;

export class LiveStream {
  #subscription: Subscription | null = null;
  #current: StreamConnection | null = null;
  #former = new Set<StreamConnection>(); // still open until the current one is ready
  #replaced = new Set<StreamConnection>(); // still read for a moment after that
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #cursor: string | null = null;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly listener: StreamListener) {}

  follow(subscription: Subscription): void {
    this.#subscription = subscription;
    const connections = this.#current === null ? [...this.#former] : [...this.#former, this.#current];
    this.#open(!connections.some((connection) => connection.covers(subscription)));
  }

  /** Connects at once if there is no connection. */
  wake(): void {
    if (this.#subscription !== null && this.#current === null) this.#open(true);
  }

  /** Closes the connection until `wake` is called. */
  pause(): void {
    clearTimeout(this.#timer);
    this.#current?.close();
    this.#current = null;
    this.#replaceFormer();
    this.#closeReplaced();
  }

  close(): void {
    this.#subscription = null;
    this.pause();
  }

  #open(hasMissedChanges: boolean): void {
    clearTimeout(this.#timer);
    const subscription = this.#subscription;
    if (subscription === null) return;
    this.#closeReplaced(); // browsers allow few connections
    if (this.#current !== null) this.#former.add(this.#current);
    else this.listener.onConnection(this.#cursor === null ? "connecting" : "reconnecting");
    const connection: StreamConnection = new StreamConnection(subscription, hasMissedChanges ? (this.#cursor ?? "") : null, {
      onReady: () => {
        if (this.#current !== connection) return;
        this.#replaceFormer();
        this.#closeTimer = setTimeout(() => this.#closeReplaced(), LAST_ITEMS_MS);
        this.#failures = 0;
        this.listener.onConnection("live");
      },
      onItems: (items) => {
        if (subscription.all === this.#subscription?.all) this.listener.onItems(items); // otherwise they may be of others' conversations
      },
      onCursor: (value) => {
        if (this.#current === connection) this.#cursor = value;
      },
      onEnd: (error) => {
        this.#former.delete(connection);
        this.#replaced.delete(connection);
        if (this.#current === connection) this.#handleEnd(error);
      },
    });
    this.#current = connection;
    void connection.run();
  }

  #replaceFormer(): void {
    for (const connection of this.#former) this.#replaced.add(connection);
    this.#former.clear();
  }

  #closeReplaced(): void {
    clearTimeout(this.#closeTimer);
    for (const connection of this.#replaced) connection.close();
    this.#replaced.clear();
  }

  #handleEnd(error: unknown): void {
    this.pause();
    if (error instanceof ApiError && error.status === 422) this.#cursor = null;
    else if (error instanceof ApiError && error.status < 500 && error.status !== 429) {
      this.#subscription = null;
      this.listener.onRejected(error);
      return;
    }
    this.listener.onConnection("reconnecting");
    const delay = Math.min(FIRST_DELAY_MS * 2 ** this.#failures, MAX_DELAY_MS) * (0.5 + Math.random() / 2);
    this.#failures += 1;
    this.#timer = setTimeout(() => this.#open(true), delay);
  }
}

interface ConnectionListener {
  onReady: () => void;
  onItems: (items: LiveItem[]) => void;
  onCursor: (cursor: string) => void;
  onEnd: (error: unknown) => void;
}

/** One connection, from its start to its end. */
class StreamConnection {
  #isReady = false; // the server has subscribed it
  #isClosed = false;
  #abort = new AbortController();
  #watchdog: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly subscription: Subscription,
    private readonly cursor: string | null,
    private readonly listener: ConnectionListener,
  ) {}

  /** Whether it already receives the changes of lists that a subscription would. */
  covers(subscription: Subscription): boolean {
    return this.#isReady && this.subscription.all === subscription.all;
  }

  async run(): Promise<void> {
    let failure: unknown = null;
    try {
      await this.#listen();
    } catch (error) {
      failure = error;
    }
    clearTimeout(this.#watchdog);
    if (!this.#isClosed) this.listener.onEnd(failure);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#watchdog);
    this.#abort.abort();
  }

  async #listen(): Promise<void> {
    const { follow, all } = this.subscription;
    const targets = follow && [follow.after === null ? follow.id : `${follow.id}:${follow.after}`];
    this.#restartWatchdog();
    const reader = await openEventStream("GET", "/api/live", {
      query: { follow: targets, all },
      headers: this.cursor === null ? {} : { "Last-Event-ID": this.cursor },
      signal: this.#abort.signal,
    });
    const parser = new SseParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.#isClosed) return;
      this.#restartWatchdog();
      this.#readChunk(parser, value);
    }
  }

  #readChunk(parser: SseParser, chunk: string): void {
    const items = parser.read(chunk).map(({ name, data }) => ({ name, data: JSON.parse(data) as unknown }) as LiveItem);
    if (!this.#isReady) {
      this.#isReady = true; // the server sends its first chunk after it has subscribed us
      this.listener.onReady();
    }
    if (items.length > 0) this.listener.onItems(items);
    if (parser.cursor !== null) this.listener.onCursor(parser.cursor);
  }

  #restartWatchdog(): void {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.#abort.abort(), MAX_SILENCE_MS);
  }
}
