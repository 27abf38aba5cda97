/**
 * The one live connection of this page: opened, watched, and opened again where it ended.
 *
 * Always true: another conversation is followed on a new connection before the old one is let go, so nothing falls
 * between the two; after a cut the cursor brings what was missed.
 */
import { address, ApiError, reach, refusal } from "../api/client";
import type { LiveItem } from "../api/types";
import { FrameReader } from "./frames";

export type Connection = "connecting" | "live" | "reconnecting";

interface Followed {
  id: string;
  after: number | null; // the last event that is known; null: from now on
}

interface Wanted {
  follow: Followed | null;
  all: boolean;
}

interface Listening {
  onItems: (items: LiveItem[]) => void;
  onConnection: (connection: Connection) => void;
  onRefused: (error: ApiError) => void;
}

const SILENCE = 40_000; // milliseconds after which a silent line is taken for dead; heartbeats come every 15 s
const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;

export class LiveStream {
  #wanted: Wanted | null = null;
  #current: Line | null = null;
  #former = new Set<Line>(); // still listened to, until the current one is heard
  #cursor: string | null = null;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly listening: Listening) {}

  /** Follow this from now on. */
  follow(wanted: Wanted): void {
    this.#wanted = wanted;
    // While an earlier line is alive nothing is missed; otherwise the cursor asks for the lists again.
    const lines = this.#current === null ? [...this.#former] : [...this.#former, this.#current];
    this.#open(lines.some((line) => line.heard) ? null : this.#cursor);
  }

  /** Come back at once, if we are away. */
  wake(): void {
    if (this.#wanted !== null && this.#current === null) this.#open(this.#cursor);
  }

  /** Let the line go until somebody wakes us. */
  rest(): void {
    clearTimeout(this.#timer);
    this.#current?.close();
    this.#current = null;
    this.#closeFormer();
  }

  /** Listen no more. */
  close(): void {
    this.#wanted = null;
    this.rest();
  }

  #open(cursor: string | null): void {
    clearTimeout(this.#timer);
    const wanted = this.#wanted;
    if (wanted === null) return;
    if (this.#current !== null) this.#former.add(this.#current);
    else this.listening.onConnection(this.#cursor === null ? "connecting" : "reconnecting");
    const line: Line = new Line(wanted, cursor, {
      onHeard: () => {
        if (this.#current !== line) return;
        this.#closeFormer();
        this.#failures = 0;
        this.listening.onConnection("live");
      },
      onItems: (items) => this.listening.onItems(items),
      onCursor: (value) => {
        if (this.#current === line) this.#cursor = value;
      },
      onEnd: (error) => {
        this.#former.delete(line);
        if (this.#current === line) this.#ended(error);
      },
    });
    this.#current = line;
    void line.run();
  }

  #closeFormer(): void {
    for (const line of this.#former) line.close();
    this.#former.clear();
  }

  #ended(error: unknown): void {
    this.rest();
    if (error instanceof ApiError && error.status === 422) this.#cursor = null;
    else if (error instanceof ApiError && error.status < 500 && error.status !== 429) {
      this.#wanted = null;
      this.listening.onRefused(error);
      return;
    }
    this.listening.onConnection("reconnecting");
    const delay = Math.min(FIRST_DELAY * 2 ** this.#failures, LONGEST_DELAY) * (0.5 + Math.random() / 2);
    this.#failures += 1;
    this.#timer = setTimeout(() => this.#open(this.#cursor), delay);
  }
}

interface Hearing {
  onHeard: () => void;
  onItems: (items: LiveItem[]) => void;
  onCursor: (cursor: string) => void;
  onEnd: (error: unknown) => void;
}

/** One connection, from its beginning to its end. */
class Line {
  heard = false;
  #closed = false;
  #abort = new AbortController();
  #watchdog: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly wanted: Wanted,
    private readonly cursor: string | null,
    private readonly hearing: Hearing,
  ) {}

  async run(): Promise<void> {
    let failure: unknown = null;
    try {
      await this.#listen();
    } catch (error) {
      failure = error;
    }
    clearTimeout(this.#watchdog);
    if (!this.#closed) this.hearing.onEnd(failure);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#watchdog);
    this.#abort.abort();
  }

  async #listen(): Promise<void> {
    const { follow, all } = this.wanted;
    const place = follow && (follow.after === null ? follow.id : `${follow.id}:${follow.after}`);
    this.#watch();
    const response = await reach(address("api/live", { follow: place, all }), {
      headers: { Accept: "text/event-stream", ...(this.cursor !== null && { "Last-Event-ID": this.cursor }) },
      signal: this.#abort.signal,
      cache: "no-store",
    });
    if (!response.ok || response.body === null) throw await refusal(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const frames = new FrameReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.#closed) return;
      this.#watch();
      this.#take(frames, value);
    }
  }

  #take(frames: FrameReader, chunk: string): void {
    const items = frames.read(chunk).map(({ name, data }) => ({ name, data: JSON.parse(data) as unknown }) as LiveItem);
    if (!this.heard) {
      this.heard = true; // the server has us on its list now
      this.hearing.onHeard();
    }
    if (items.length > 0) this.hearing.onItems(items);
    if (frames.cursor !== null) this.hearing.onCursor(frames.cursor);
  }

  #watch(): void {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.#abort.abort(), SILENCE);
  }
}
