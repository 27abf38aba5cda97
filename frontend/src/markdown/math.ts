/** Formulas in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. KaTeX typesets them; it is loaded when the first one is shown. */
import type { MarkedExtension, Tokens } from "marked";
import { checkBudget } from "./budget";
import { escapeHtml } from "./escape";

const MAX_FORMULA_CHARS = 5000; // longer ones stay text; it also keeps the search for the end of a formula short
const MAX_TYPESET_MS = 1000; // for the formulas of one block; the rest stays TeX
const MAX_TASK_MS = 20; // then the browser may react to the reader

interface Formula extends Tokens.Generic {
  tex: string;
}

interface Delimiters {
  open: string;
  close: string;
  isValid: (tex: string, next: string) => boolean; // `next` is the character after the formula
}

const isNotBlank = (tex: string) => tex.trim() !== "";

const INLINE: readonly Delimiters[] = [
  { open: "$$", close: "$$", isValid: (tex) => tex !== "" && !tex.includes("$") },
  // Prices are not formulas: a formula neither starts nor ends with a space, and no digit follows it.
  { open: "$", close: "$", isValid: (tex, next) => /^[^\s$](?:[^\n]*\S)?$/.test(tex) && !/[\d$]/.test(next) },
  { open: "\\(", close: "\\)", isValid: (tex) => tex !== "" && !tex.includes("\n") },
];
const BLOCK: readonly Delimiters[] = [
  { open: "$$", close: "$$", isValid: (tex, next) => isNotBlank(tex) && (next === "" || next === "\n") },
  { open: "\\[", close: "\\]", isValid: isNotBlank },
];

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

/** Finds a formula at the start of a text. The parser calls this at each of its steps. */
function matchFormula(type: string, source: string, delimiters: readonly Delimiters[]): Formula | undefined {
  checkBudget();
  for (const { open, close, isValid } of delimiters) {
    if (!source.startsWith(open)) continue;
    const end = findEnd(source, open.length, close);
    if (end === -1) continue;
    const tex = source.slice(open.length, end);
    const after = end + close.length;
    if (isValid(tex, source.charAt(after))) return { type, raw: source.slice(0, after), tex: tex.trim() };
  }
  return undefined;
}

/** The position of the closing delimiter; -1 if there is none nearby. A dollar sign after a backslash does not close. */
function findEnd(source: string, start: number, close: string): number {
  const nearby = source.slice(0, start + MAX_FORMULA_CHARS + close.length);
  let end = nearby.indexOf(close, start);
  if (close !== "$") return end;
  while (end !== -1 && isEscaped(nearby, end, start)) end = nearby.indexOf(close, end + 1);
  return end;
}

function isEscaped(source: string, position: number, start: number): boolean {
  let first = position;
  while (first > start && source[first - 1] === "\\") first -= 1;
  return (position - first) % 2 === 1;
}

function renderFormula({ tex }: Formula, className: string): string {
  return `<span class="${className}">${escapeHtml(tex)}</span>`;
}

/** Typesets every formula in an element once. If KaTeX cannot be loaded, the formulas stay as TeX. */
export async function typesetFormulas(element: HTMLElement): Promise<void> {
  const formulas = [...element.querySelectorAll<HTMLElement>(".math:not([data-typeset])")];
  if (formulas.length === 0) return;
  const modules = await Promise.all([import("katex"), import("katex/dist/katex.min.css")]).catch(() => null);
  if (modules === null) return;
  const [{ default: katex }] = modules;
  let spent = 0;
  let taskStart = performance.now();
  for (const formula of formulas) {
    if (formula.dataset.typeset !== undefined || !element.isConnected) continue;
    const tex = formula.textContent;
    formula.dataset.typeset = "";
    katex.render(tex, formula, { displayMode: formula.classList.contains("math-display"), throwOnError: false, trust: false });
    const taskMs = performance.now() - taskStart;
    if (taskMs < MAX_TASK_MS) continue;
    spent += taskMs;
    if (spent > MAX_TYPESET_MS) return;
    await new Promise((resolve) => setTimeout(resolve));
    taskStart = performance.now();
  }
}
