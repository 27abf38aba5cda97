/** Parses server-sent events from the chunks of a connection. */

export interface SseEvent {
  name: string;
  data: string;
}

export class SseParser {
  cursor: string | null = null; // the last `id:` field
  #rest = ""; // the start of an event that is not complete yet

  /** Returns the events that this chunk completes. */
  read(chunk: string): SseEvent[] {
    const blocks = (this.#rest + chunk).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map((block) => this.#parseEvent(block)).filter((event) => event !== null);
  }

  #parseEvent(block: string): SseEvent | null {
    let name = "";
    let data: string | null = null;
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      if (colon <= 0) continue; // a comment, sent as a heartbeat
      const field = line.slice(0, colon);
      const value = line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") name = value;
      else if (field === "data") data = data === null ? value : `${data}\n${value}`;
      else if (field === "id") this.cursor = value;
    }
    return data === null ? null : { name, data };
  }
}
