/**
 * Markdown as HTML that is safe to show.
 *
 * Always true: HTML inside Markdown is shown as it was written and never takes effect; no image is fetched from
 * elsewhere; a link opens in a page of its own, which cannot reach back.
 */
import DOMPurify from "dompurify";
import { Marked, Renderer, type Token } from "marked";
import { escaped, formulas } from "./math";

const SAFE = /^(?:https?:|mailto:|tel:|#)/i;

const marked = new Marked({ gfm: true, breaks: false }, formulas, {
  renderer: {
    html: ({ text }) => escaped(text),
    link(token) {
      const inside = this.parser.parseInline(token.tokens);
      return linked(token.href, inside, token.title);
    },
    image: ({ href, text }) =>
      href.startsWith("data:image/") ? `<img src="${escaped(href)}" alt="${escaped(text)}">` : linked(href, escaped(text || href)),
    table(token) {
      return `<div class="table">${Renderer.prototype.table.call(this, token)}</div>`;
    },
  },
});

const PURE = {
  ALLOWED_TAGS: [
    ...["a", "b", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img"],
    ...["input", "li", "ol", "p", "pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ],
  ALLOWED_ATTR: ["href", "title", "target", "rel", "class", "align", "start", "type", "checked", "disabled", "src", "alt"],
};

/** The top-level parts of a text. */
export function lexed(text: string): Token[] {
  return marked.lexer(text);
}

/** Parts that follow each other, as HTML. */
export function htmlOf(...tokens: Token[]): string {
  return DOMPurify.sanitize(marked.parser(tokens), PURE);
}

/** The language a block of code names, if it names one. */
export function languageOf(info: string | undefined): string {
  return /^[\w+#.-]+/.exec(info ?? "")?.[0].toLowerCase() ?? "";
}

function linked(href: string, inside: string, title?: string | null): string {
  if (!SAFE.test(href)) return inside;
  const named = title ? ` title="${escaped(title)}"` : "";
  return `<a href="${escaped(href)}"${named} target="_blank" rel="noopener noreferrer">${inside}</a>`;
}
