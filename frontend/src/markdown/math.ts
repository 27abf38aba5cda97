/** Formulas in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. KaTeX typesets them; it is loaded when the first one is shown. */
import type { MarkedExtension, Tokens } from "marked";

const INLINE = /^\$\$([^$]+?)\$\$|^\$(?![\s$])((?:\\.|[^\\\n$])+?)(?<!\s)\$(?![\d$])|^\\\((.+?)\\\)/;
const BLOCK = /^\$\$\s*([\s\S]+?)\s*\$\$(?=\n|$)|^\\\[\s*([\s\S]+?)\s*\\\]/;

interface Formula extends Tokens.Generic {
  tex: string;
}

export const formulaExtension: MarkedExtension = {
  extensions: [
    {
      name: "formula",
      level: "inline",
      start: (source) => findFirst(source, "$", "\\("),
      tokenizer: (source) => matchFormula("formula", source, INLINE),
      renderer: (token) => renderFormula(token as Formula, "math"),
    },
    {
      name: "formulaBlock",
      level: "block",
      start: (source) => findFirst(source, "\n$$", "\n\\["),
      tokenizer: (source) => matchFormula("formulaBlock", source, BLOCK),
      renderer: (token) => `<p>${renderFormula(token as Formula, "math math-display")}</p>`,
    },
  ],
};

function findFirst(source: string, ...delimiters: string[]): number | undefined {
  const positions = delimiters.map((delimiter) => source.indexOf(delimiter)).filter((position) => position >= 0);
  return positions.length === 0 ? undefined : Math.min(...positions);
}

function matchFormula(type: string, source: string, pattern: RegExp): Formula | undefined {
  const match = pattern.exec(source);
  return match === null ? undefined : { type, raw: match[0], tex: match.slice(1).join("") };
}

function renderFormula({ tex }: Formula, className: string): string {
  return `<span class="${className}">${escapeHtml(tex)}</span>`;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Typesets every formula in an element once. If KaTeX cannot be loaded, the formulas stay as TeX. */
export async function typesetFormulas(element: HTMLElement): Promise<void> {
  const formulas = [...element.querySelectorAll<HTMLElement>(".math:not([data-typeset])")];
  if (formulas.length === 0) return;
  const modules = await Promise.all([import("katex"), import("katex/dist/katex.min.css")]).catch(() => null);
  if (modules === null) return;
  const [{ default: katex }] = modules;
  for (const formula of formulas) {
    if (formula.dataset.typeset !== undefined) continue;
    const tex = formula.textContent;
    formula.dataset.typeset = "";
    katex.render(tex, formula, { displayMode: formula.classList.contains("math-display"), throwOnError: false, trust: false });
  }
}
