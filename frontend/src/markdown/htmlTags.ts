/**
 * The few HTML tags that work in Markdown: `<details>` with `<summary>`, `<sub>`, `<sup>`, `<kbd>`, `<mark>` and `<br>`.
 *
 * Always true: they work without attributes only (`open` excepted), so that nothing in them runs, loads or restyles anything.
 * Every other tag is shown as text.
 */
import type { MarkedExtension, Token, Tokens } from "marked";
import { escapeHtml } from "./escape";

export interface Details extends Tokens.Generic {
  summary: Token[];
  tokens: Token[];
  isOpen: boolean; // also while its end is missing, so that an answer that grows hides nothing
}

const DETAILS = /^ {0,3}<details(\s{1,9}open(?:="")?)?\s{0,9}>/i;
const DETAILS_BORDER = /<details\b|<\/details\s{0,9}>|^ {0,3}(?:`{3,}|~{3,})/gim;
const SUMMARY = /^\s*<summary>([\s\S]*?)(?:<\/summary>|$)/i;
const INLINE_TAG = /^<(sub|sup|kbd|mark)>/i;
const LINE_BREAK = /^<br\s?\/?>$/i;
const MAX_DETAILS_DEPTH = 8;
const MAX_INLINE_CHARS = 2000; // between two tags; it keeps the search for the end short

let depth = 0; // of `<details>` in `<details>`

export const tagExtension: MarkedExtension = {
  extensions: [
    {
      name: "details",
      level: "block",
      tokenizer(source) {
        const start = DETAILS.exec(source);
        if (start === null || depth === MAX_DETAILS_DEPTH) return undefined;
        const { bodyEnd, end } = findDetailsEnd(source, start[0].length);
        const content = source.slice(start[0].length, bodyEnd);
        const summary = SUMMARY.exec(content.slice(0, MAX_INLINE_CHARS));
        const token = {
          type: "details",
          raw: source.slice(0, end),
          summary: this.lexer.inline((summary?.[1] ?? "").trim()),
          tokens: [] as Token[],
          isOpen: start[1] !== undefined || bodyEnd === end,
        };
        depth += 1;
        try {
          this.lexer.blockTokens(content.slice(summary?.[0].length ?? 0).trim(), token.tokens);
        } finally {
          depth -= 1;
        }
        return token;
      },
      renderer: () => "", // a component renders it
    },
    {
      name: "inlineTag",
      level: "inline",
      tokenizer(source) {
        const start = INLINE_TAG.exec(source);
        const tag = start?.[1]?.toLowerCase();
        if (start === null || tag === undefined) return undefined;
        const nearby = source.slice(0, MAX_INLINE_CHARS).toLowerCase();
        const end = nearby.indexOf(`</${tag}>`, start[0].length);
        if (end === -1) return undefined;
        const raw = source.slice(0, end + tag.length + 3);
        return { type: "inlineTag", raw, tag, tokens: this.lexer.inlineTokens(source.slice(start[0].length, end)) };
      },
      renderer(token) {
        return `<${token.tag as string}>${this.parser.parseInline(token.tokens ?? [])}</${token.tag as string}>`;
      },
    },
  ],
  renderer: { html: ({ text }) => (LINE_BREAK.test(text) ? "<br>" : escapeHtml(text)) },
};

/** Where the content and the whole of `<details>` end. Without a closing tag, that is the end of the text. */
function findDetailsEnd(source: string, start: number): { bodyEnd: number; end: number } {
  let open = 1;
  let fence: string | null = null; // tags in code are code
  DETAILS_BORDER.lastIndex = start;
  for (let border = DETAILS_BORDER.exec(source); border !== null; border = DETAILS_BORDER.exec(source)) {
    const mark = border[0].trim();
    if (!mark.startsWith("<")) {
      if (fence === null) fence = mark;
      else if (mark.startsWith(fence)) fence = null;
    } else if (fence === null) {
      open += mark.startsWith("</") ? -1 : 1;
      if (open === 0) return { bodyEnd: border.index, end: border.index + border[0].length };
    }
  }
  return { bodyEnd: source.length, end: source.length };
}
