/**
 * Splits a growing Markdown text into blocks: paragraphs, lists, code. Pure.
 *
 * While an answer grows, only its last blocks are parsed again. The earlier ones stay the same objects, so they are not
 * rendered again.
 */
import type { Token, Tokens } from "marked";
import type { Footnote } from "./footnotes";
import { parseBlocks } from "./html";

export interface Blocks {
  text: string;
  tokens: readonly Token[];
  definitions: number; // of reference links; a new one may change every block
  isPlain: boolean; // the text is too complex, and is shown as it is; there are no blocks
}

const OPEN_BLOCKS = 2; // at the end, which more text may still change

/** `before` are the blocks of an earlier, shorter version of the text, if there are any. */
export function splitBlocks(text: string, before: Blocks | null = null): Blocks {
  const source = text.replace(/\r\n?/g, "\n");
  if (before === null || !source.startsWith(before.text)) return splitWholeText(source);
  if (source === before.text) return before;
  if (before.isPlain) return makePlain(source); // more text makes it no simpler
  const finished = before.tokens.slice(0, -OPEN_BLOCKS);
  const length = finished.reduce((sum, token) => sum + token.raw.length, 0);
  const added = parseBlocks(source.slice(length));
  if (added === null) return makePlain(source);
  const tokens = [...finished, ...added];
  return countDefinitions(tokens) > 0 ? splitWholeText(source) : { text: source, tokens, definitions: 0, isPlain: false };
}

const plainTexts = new Set<string>(); // found to be too complex: not parsed again when they are shown again
const MAX_PLAIN_TEXTS = 50;

function splitWholeText(text: string): Blocks {
  const tokens = plainTexts.has(text) ? null : parseBlocks(text);
  if (tokens !== null) return { text, tokens, definitions: countDefinitions(tokens), isPlain: false };
  if (plainTexts.size === MAX_PLAIN_TEXTS) plainTexts.clear();
  plainTexts.add(text);
  return makePlain(text);
}

function makePlain(text: string): Blocks {
  return { text, tokens: [], definitions: 0, isPlain: true };
}

function countDefinitions(tokens: readonly Token[]): number {
  return tokens.filter((token) => token.type === "def").length;
}

/** Whether a block is code or `<details>`, or contains one. Those are rendered as components, not as HTML. */
export function isComponent(token: Token): boolean {
  return token.type === "code" || token.type === "details" || getChildren(token).some((children) => children.some(isComponent));
}

/** The blocks inside a block: one array for each item of a list. */
export function getChildren(token: Token): readonly (readonly Token[])[] {
  if (token.type === "list") return (token as Tokens.List).items.map((item) => item.tokens);
  return token.type === "blockquote" || token.type === "details" ? [(token as Tokens.Blockquote).tokens] : [];
}

/** All footnotes of a message, in the order in which they are defined. */
export function findFootnotes(tokens: readonly Token[]): Footnote[] {
  return tokens.flatMap((token) =>
    token.type === "footnote" ? [token as Footnote] : getChildren(token).flatMap((children) => findFootnotes(children)),
  );
}

/** Groups blocks that are rendered together: a component is alone, the text between components is not. */
export function groupBlocks(tokens: readonly Token[]): Token[][] {
  const groups: Token[][] = [];
  let canGrow = false;
  for (const token of tokens) {
    const isAlone = isComponent(token);
    if (canGrow && !isAlone) groups.at(-1)?.push(token);
    else groups.push([token]);
    canGrow = !isAlone;
  }
  return groups;
}
