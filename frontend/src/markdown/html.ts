/**
 * Renders Markdown as safe HTML.
 *
 * Always true: HTML inside Markdown is shown as text and never takes effect; no image is loaded from another site; a link
 * opens in a new tab that has no access to this one.
 */
import DOMPurify from "dompurify";
import { Marked, Renderer, type Token } from "marked";
import { escapeHtml, formulaExtension } from "./math";

const SAFE_URL = /^(?:https?:|mailto:|tel:|#)/i;

const marked = new Marked({ gfm: true, breaks: false }, formulaExtension, {
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

export function parseBlocks(text: string): Token[] {
  return marked.lexer(text);
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
