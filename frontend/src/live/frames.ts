/** Server-sent events, read from the chunks a connection brings. Pure but for the rest it keeps. */

export interface Frame {
  name: string;
  data: string;
}

export class FrameReader {
  cursor: string | null = null; // the last `id:` that came
  #rest = "";

  /** The whole events that are there with this chunk. */
  read(chunk: string): Frame[] {
    const blocks = (this.#rest + chunk).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map((block) => this.#frame(block)).filter((frame) => frame !== null);
  }

  #frame(block: string): Frame | null {
    let name = "";
    let data: string | null = null;
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      if (colon <= 0) continue; // a comment, which only says that somebody is there
      const field = line.slice(0, colon);
      const value = line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") name = value;
      else if (field === "data") data = data === null ? value : `${data}\n${value}`;
      else if (field === "id") this.cursor = value;
    }
    return data === null ? null : { name, data };
  }
}
