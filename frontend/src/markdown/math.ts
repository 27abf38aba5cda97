/** Formulas in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. They are typeset by KaTeX, which is loaded when one is seen. */
import type { MarkedExtension, Tokens } from "marked";

const INLINE = /^\$\$([^$]+?)\$\$|^\$(?![\s$])((?:\\.|[^\\\n$])+?)(?<!\s)\$(?![\d$])|^\\\((.+?)\\\)/;
const BLOCK = /^\$\$\s*([\s\S]+?)\s*\$\$(?=\n|$)|^\\\[\s*([\s\S]+?)\s*\\\]/;

interface Formula extends Tokens.Generic {
  tex: string;
}

export const formulas: MarkedExtension = {
  extensions: [
    {
      name: "formula",
      level: "inline",
      start: (source) => firstOf(source, "$", "\\("),
      tokenizer: (source) => found("formula", source, INLINE),
      renderer: (token) => written(token as Formula, "math"),
    },
    {
      name: "displayed",
      level: "block",
      start: (source) => firstOf(source, "\n$$", "\n\\["),
      tokenizer: (source) => found("displayed", source, BLOCK),
      renderer: (token) => `<p>${written(token as Formula, "math math-display")}</p>`,
    },
  ],
};

function firstOf(source: string, ...signs: string[]): number | undefined {
  const places = signs.map((sign) => source.indexOf(sign)).filter((place) => place >= 0);
  return places.length === 0 ? undefined : Math.min(...places);
}

function found(type: string, source: string, pattern: RegExp): Formula | undefined {
  const match = pattern.exec(source);
  return match === null ? undefined : { type, raw: match[0], tex: match.slice(1).join("") };
}

function written({ tex }: Formula, names: string): string {
  return `<span class="${names}">${escaped(tex)}</span>`;
}

/** Text as HTML shows it. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Typeset every formula in an element, once. They stay as they were written where KaTeX cannot be fetched. */
export async function typeset(element: HTMLElement): Promise<void> {
  const waiting = [...element.querySelectorAll<HTMLElement>(".math:not([data-done])")];
  if (waiting.length === 0) return;
  const fetched = await Promise.all([import("katex"), import("katex/dist/katex.min.css")]).catch(() => null);
  if (fetched === null) return;
  const [{ default: katex }] = fetched;
  for (const each of waiting) {
    if (each.dataset.done !== undefined) continue;
    const tex = each.textContent;
    each.dataset.done = "";
    katex.render(tex, each, { displayMode: each.classList.contains("math-display"), throwOnError: false, trust: false });
  }
}
