/**
 * A growing text in blocks: paragraphs, lists, code. Pure.
 *
 * While an answer grows only its last blocks are read again; those before keep being the same objects, so nothing that
 * is on the screen is drawn twice.
 */
import type { Token } from "marked";
import { lexed } from "./html";

export interface Blocks {
  text: string;
  tokens: readonly Token[];
}

const OPEN = 2; // blocks at the end that more text may still change

/** The blocks of a text; `before` are those of its beginning, if it has grown. */
export function blocksOf(text: string, before: Blocks | null = null): Blocks {
  const source = text.replace(/\r\n?/g, "\n");
  if (before === null || !source.startsWith(before.text)) return { text: source, tokens: lexed(source) };
  if (source === before.text) return before;
  const settled = before.tokens.slice(0, -OPEN);
  const length = settled.reduce((sum, token) => sum + token.raw.length, 0);
  return { text: source, tokens: [...settled, ...lexed(source.slice(length))] };
}
