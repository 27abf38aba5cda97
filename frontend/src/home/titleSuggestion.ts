/** The title of a conversation, made from its first message. Pure. */
import { stripMarkdown } from "../format/text";

const MAX_TITLE_CHARS = 60;

/** Suggests a title for a conversation that starts with this text; none for a command or for a text without words. */
export function suggestTitle(text: string): string | undefined {
  if (/^\/\w/.test(text)) return undefined;
  const line = stripMarkdown(text.slice(0, 4 * MAX_TITLE_CHARS));
  if (line.length <= MAX_TITLE_CHARS) return line === "" ? undefined : line;
  const cut = line.slice(0, MAX_TITLE_CHARS);
  const lastBlank = cut.lastIndexOf(" ");
  return `${cut.slice(0, lastBlank > MAX_TITLE_CHARS / 2 ? lastBlank : MAX_TITLE_CHARS).trimEnd()}…`;
}
