/** What things are called. Pure. */
import type { Session } from "../api/types";
import { words } from "../words";

/** A conversation without a title is called by its place, and one of our own by what was said last. */
export function nameOf(session: Session): string {
  if (session.title) return session.title;
  if (session.platform === "web" || session.platform === "local" || session.platform === "api") {
    return plain(session.preview) || words.untitled;
  }
  return session.name || words.untitled;
}

export function platformName(platform: string): string {
  return words.platforms[platform] ?? platform;
}

const LONGEST = 60; // characters of a title that was made from what was said

/** A title for a conversation that begins with this; none for a command, or where there are no words. */
export function titleFrom(text: string): string | undefined {
  if (/^\/\w/.test(text)) return undefined;
  const line = plain(text.slice(0, 4 * LONGEST));
  if (line.length <= LONGEST) return line === "" ? undefined : line;
  const cut = line.slice(0, LONGEST);
  const lastBlank = cut.lastIndexOf(" ");
  return `${cut.slice(0, lastBlank > LONGEST / 2 ? lastBlank : LONGEST).trimEnd()}…`;
}

/** Markdown on one line, without its signs. */
export function plain(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^\s*(?:>|[-*+]|\d+\.)\s+/gm, "")
    .replace(/(^|\s)#{1,6}\s+/g, "$1")
    .replace(/(\*\*|__|~~|`+)(\S.*?)\1/g, "$2")
    .replace(/\*(\S[^*]*)\*/g, "$1")
    .replace(/\s+/g, " ")
    .trim();
}
