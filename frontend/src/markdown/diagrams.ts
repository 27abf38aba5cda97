/** Where a text has diagrams: fenced blocks of Mermaid that have come to their end. Pure. */
import type { Token, Tokens } from "marked";
import { languageOf, lexed } from "./html";

export const DIAGRAM = "mermaid";

export interface Part {
  isDiagram: boolean;
  text: string;
}

/** The text of a diagram, if a block is one and nothing can be added to it any more. */
export function diagramIn(token: Token): string | null {
  if (token.type !== "code") return null;
  const { text, lang, raw } = token as Tokens.Code;
  return languageOf(lang) === DIAGRAM && isClosed(raw) ? text : null;
}

/** A text that is no Markdown, and the diagrams in it. */
export function withDiagrams(text: string): Part[] {
  if (!text.includes(DIAGRAM)) return [{ isDiagram: false, text }];
  const parts: Part[] = [];
  for (const token of lexed(text)) {
    const diagram = diagramIn(token);
    const last = parts.at(-1);
    if (diagram !== null) parts.push({ isDiagram: true, text: diagram });
    else if (last?.isDiagram === false) last.text += token.raw;
    else parts.push({ isDiagram: false, text: token.raw });
  }
  return parts.map((part) => (part.isDiagram || parts.length === 1 ? part : { ...part, text: part.text.replace(/^\n+|\n+$/g, "") }));
}

function isClosed(raw: string): boolean {
  const lines = raw.trimEnd().split("\n");
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1];
  const end = lines.at(-1)?.trim() ?? "";
  return fence !== undefined && lines.length > 1 && end.startsWith(fence) && new Set(end).size === 1;
}
