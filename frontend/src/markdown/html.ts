/**
 * Renders Markdown as safe HTML.
 *
 * Always true: HTML inside Markdown is shown as text and never takes effect, except for a few harmless tags (`htmlTags.ts`); no
 * image is loaded from another site before the reader asks for it; a link opens in a new tab that has no access to this one.
 */
import DOMPurify from "dompurify";
import { Marked, Parser, Renderer, type Token, type Tokens } from "marked";
import { words } from "../words";
import { runWithinBudget } from "./budget";
import { escapeHtml } from "./escape";
import { footnoteExtension, NO_FOOTNOTES, renderWithFootnotes, type FootnoteNumbers } from "./footnotes";
import { tagExtension, type Details } from "./htmlTags";
import { formulaExtension } from "./math";
import { isRemoteImage, renderRemoteImage } from "./remoteImages";

const SAFE_URL = /^(?:https?:|mailto:|tel:|#)/i;
const MAX_AUTOLINK_CHARS = 2000; // finding the end of a longer one takes the parser too long
const MAX_NESTING = 40; // deeper elements would block the browser's layout
const SHORT_CELL_CHARS = 24; // of a table; a longer cell may break its text into lines

let isInLink = false; // a button in a link could not be used

const marked = new Marked({ gfm: true, breaks: false }, formulaExtension, footnoteExtension, tagExtension, {
  tokenizer: {
    url: (source) => (/\s/.test(source.slice(0, MAX_AUTOLINK_CHARS)) || source.length < MAX_AUTOLINK_CHARS ? false : undefined),
  },
  renderer: {
    link(token) {
      isInLink = true;
      const content = this.parser.parseInline(token.tokens);
      isInLink = false;
      return renderLink(token.href, content, token.title);
    },
    image: ({ href, text }) => renderImage(href, text),
    table(token) {
      return `<div class="table">${Renderer.prototype.table.call(this, token)}</div>`;
    },
    tablecell(token) {
      const cell = Renderer.prototype.tablecell.call(this, token) as string;
      return token.text.length > SHORT_CELL_CHARS ? cell.replace(/^<t[dh]/, '$& class="long"') : cell;
    },
    checkbox: ({ checked }) =>
      `<input type="checkbox" disabled ${checked ? "checked " : ""}aria-label="${escapeHtml(checked ? words.taskDone : words.taskOpen)}"> `,
  },
});

const PURIFY_OPTIONS = {
  ALLOWED_TAGS: [
    ...["a", "b", "blockquote", "br", "button", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img"],
    ...["input", "kbd", "li", "mark", "ol", "p", "pre", "small", "span", "strong", "sub", "sup"],
    ...["table", "tbody", "td", "th", "thead", "tr", "ul"],
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
  if (token.type === "details") return [...(token as Details).summary, ...(token as Details).tokens];
  if (token.type !== "table") return (token as Tokens.Generic).tokens ?? [];
  const { header, rows } = token as Tokens.Table;
  return [...header, ...rows.flat()].flatMap((cell) => cell.tokens);
}

export function renderHtml(tokens: readonly Token[], footnotes: FootnoteNumbers = NO_FOOTNOTES): string {
  return renderWithFootnotes(footnotes, () => DOMPurify.sanitize(marked.parser([...tokens]), PURIFY_OPTIONS));
}

/** Renders the inside of a line, such as a heading. */
export function renderInlineHtml(tokens: readonly Token[], footnotes: FootnoteNumbers = NO_FOOTNOTES): string {
  const parser = new Parser(marked.defaults);
  return renderWithFootnotes(footnotes, () => DOMPurify.sanitize(parser.parseInline([...tokens]), PURIFY_OPTIONS));
}

// A second line of defense: even if a text got an image into the HTML, it would load nothing.
DOMPurify.addHook("afterSanitizeAttributes", (element) => {
  if (element.nodeName === "IMG" && !isEmbedded(element.getAttribute("src") ?? "")) element.removeAttribute("src");
});

function isEmbedded(url: string): boolean {
  return url.startsWith("data:image/");
}

function renderImage(url: string, description: string): string {
  if (isEmbedded(url)) return `<img src="${escapeHtml(url)}" alt="${escapeHtml(description)}">`;
  if (isInLink) return escapeHtml(description || url);
  return isRemoteImage(url) ? renderRemoteImage(url, description) : renderLink(url, escapeHtml(description || url));
}

function renderLink(href: string, content: string, title?: string | null): string {
  if (!SAFE_URL.test(href)) return content;
  const titleAttribute = title ? ` title="${escapeHtml(title)}"` : "";
  return `<a href="${escapeHtml(href)}"${titleAttribute} target="_blank" rel="noopener noreferrer">${content}</a>`;
}
