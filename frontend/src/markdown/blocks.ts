/**
 * Splits a growing Markdown text into blocks: paragraphs, lists, code. Pure.
 *
 * While an answer grows, only its last blocks are parsed again. The earlier ones stay the same objects, so they are not
 * rendered again.
 */
import type { Token, Tokens } from "marked";
import { parseBlocks } from "./html";

export interface Blocks {
  text: string;
  tokens: readonly Token[];
  definitions: number; // of reference links; a new one may change every block
}

const OPEN_BLOCKS = 2; // at the end, which more text may still change

/** `before` are the blocks of an earlier, shorter version of the text, if there are any. */
export function splitBlocks(text: string, before: Blocks | null = null): Blocks {
  const source = text.replace(/\r\n?/g, "\n");
  if (before === null || !source.startsWith(before.text)) return splitWholeText(source);
  if (source === before.text) return before;
  const finished = before.tokens.slice(0, -OPEN_BLOCKS);
  const length = finished.reduce((sum, token) => sum + token.raw.length, 0);
  const tokens = [...finished, ...parseBlocks(source.slice(length))];
  return countDefinitions(tokens) > 0 ? splitWholeText(source) : { text: source, tokens, definitions: 0 };
}

function splitWholeText(text: string): Blocks {
  const tokens = parseBlocks(text);
  return { text, tokens, definitions: countDefinitions(tokens) };
}

function countDefinitions(tokens: readonly Token[]): number {
  return tokens.filter((token) => token.type === "def").length;
}

/** Whether a block is code, or a list or a quote with code in it. Those are rendered as components, not as HTML. */
export function hasCode(token: Token): boolean {
  return token.type === "code" || getChildren(token).some((children) => children.some(hasCode));
}

/** The blocks inside a block: one array for each item of a list. */
export function getChildren(token: Token): readonly (readonly Token[])[] {
  if (token.type === "list") return (token as Tokens.List).items.map((item) => item.tokens);
  return token.type === "blockquote" ? [(token as Tokens.Blockquote).tokens] : [];
}

/** Groups blocks that are rendered together: a block with code is alone, the text between such blocks is not. */
export function groupBlocks(tokens: readonly Token[]): Token[][] {
  const groups: Token[][] = [];
  let canGrow = false;
  for (const token of tokens) {
    const isAlone = hasCode(token);
    if (canGrow && !isAlone) groups.at(-1)?.push(token);
    else groups.push([token]);
    canGrow = !isAlone;
  }
  return groups;
}
