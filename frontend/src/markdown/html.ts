/**
 * Renders Markdown as safe HTML.
 *
 * Always true: HTML inside Markdown is shown as text and never takes effect; no image is loaded from another site; a link
 * opens in a new tab that has no access to this one.
 */
import DOMPurify from "dompurify";
import { Marked, Renderer, type Token, type Tokens } from "marked";
import { runWithinBudget } from "./budget";
import { escapeHtml, formulaExtension } from "./math";

const SAFE_URL = /^(?:https?:|mailto:|tel:|#)/i;
const MAX_AUTOLINK_CHARS = 2000; // finding the end of a longer one takes the parser too long
const MAX_NESTING = 40; // deeper elements would block the browser's layout

const marked = new Marked({ gfm: true, breaks: false }, formulaExtension, {
  tokenizer: {
    url: (source) => (/\s/.test(source.slice(0, MAX_AUTOLINK_CHARS)) || source.length < MAX_AUTOLINK_CHARS ? false : undefined),
  },
  renderer: {
    html: ({ text }) => escapeHtml(text),
    link(token) {
      const content = this.parser.parseInline(token.tokens);
      return renderLink(token.href, content, token.title);
    },
    image: ({ href, text }) =>
      href.startsWith("data:image/") ? `<img src="${escapeHtml(href)}" alt="${escapeHtml(text)}">` : renderLink(href, escapeHtml(text || href)),
    table(token) {
      return `<div class="table">${Renderer.prototype.table.call(this, token)}</div>`;
    },
  },
});

const PURIFY_OPTIONS = {
  ALLOWED_TAGS: [
    ...["a", "b", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img"],
    ...["input", "li", "ol", "p", "pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ],
  ALLOWED_ATTR: ["href", "title", "target", "rel", "class", "align", "start", "type", "checked", "disabled", "src", "alt"],
};

/** The blocks of a text; null if it is too complex to be shown as anything but plain text. */
export function parseBlocks(text: string): Token[] | null {
  const tokens = runWithinBudget(() => marked.lexer(text));
  return tokens === null || isTooDeep(tokens) ? null : tokens;
}

function isTooDeep(tokens: readonly Token[]): boolean {
  let level: readonly Token[] = tokens;
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_NESTING) return true;
    level = level.flatMap(listInnerTokens);
  }
  return false;
}

function listInnerTokens(token: Token): Token[] {
  if (token.type === "list") return (token as Tokens.List).items;
  if (token.type !== "table") return (token as Tokens.Generic).tokens ?? [];
  const { header, rows } = token as Tokens.Table;
  return [...header, ...rows.flat()].flatMap((cell) => cell.tokens);
}

export function renderHtml(...tokens: Token[]): string {
  return DOMPurify.sanitize(marked.parser(tokens), PURIFY_OPTIONS);
}

/** The language that a code block names after its fence; empty if it names none. */
export function readLanguage(info: string | undefined): string {
  return /^[\w+#.-]+/.exec(info ?? "")?.[0].toLowerCase() ?? "";
}

function renderLink(href: string, content: string, title?: string | null): string {
  if (!SAFE_URL.test(href)) return content;
  const titleAttribute = title ? ` title="${escapeHtml(title)}"` : "";
  return `<a href="${escapeHtml(href)}"${titleAttribute} target="_blank" rel="noopener noreferrer">${content}</a>`;
}
