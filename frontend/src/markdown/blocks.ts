/**
 * A growing text in blocks: paragraphs, lists, code. Pure.
 *
 * While an answer grows only its last blocks are read again; those before keep being the same objects, so nothing that
 * is on the screen is drawn twice.
 */
import type { Token, Tokens } from "marked";
import { lexed } from "./html";

export interface Blocks {
  text: string;
  tokens: readonly Token[];
  definitions: number; // of what links stand for; one more may change every block
}

const OPEN = 2; // blocks at the end that more text may still change

/** The blocks of a text; `before` are those of its beginning, if it has grown. */
export function blocksOf(text: string, before: Blocks | null = null): Blocks {
  const source = text.replace(/\r\n?/g, "\n");
  if (before === null || !source.startsWith(before.text)) return whole(source);
  if (source === before.text) return before;
  const settled = before.tokens.slice(0, -OPEN);
  const length = settled.reduce((sum, token) => sum + token.raw.length, 0);
  const tokens = [...settled, ...lexed(source.slice(length))];
  return definitionsIn(tokens) > 0 ? whole(source) : { text: source, tokens, definitions: 0 };
}

function whole(text: string): Blocks {
  const tokens = lexed(text);
  return { text, tokens, definitions: definitionsIn(tokens) };
}

function definitionsIn(tokens: readonly Token[]): number {
  return tokens.filter((token) => token.type === "def").length;
}

/** Whether a block is code, or a list or a quote with code in it: such are drawn part by part, and not as HTML. */
export function holdsCode(token: Token): boolean {
  return token.type === "code" || insidesOf(token).some((inside) => inside.some(holdsCode));
}

/** What stands inside of a block: one part for each item of a list. */
export function insidesOf(token: Token): readonly (readonly Token[])[] {
  if (token.type === "list") return (token as Tokens.List).items.map((item) => item.tokens);
  return token.type === "blockquote" ? [(token as Tokens.Blockquote).tokens] : [];
}

/** Blocks that are drawn together: each with code stands alone, words between them do not. */
export function groupsOf(tokens: readonly Token[]): Token[][] {
  const groups: Token[][] = [];
  let isOpen = false;
  for (const token of tokens) {
    const standsAlone = holdsCode(token);
    if (isOpen && !standsAlone) groups.at(-1)?.push(token);
    else groups.push([token]);
    isOpen = !standsAlone;
  }
  return groups;
}
