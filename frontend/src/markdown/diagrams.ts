/** Finds the diagrams in a text: fenced Mermaid blocks that are complete. Pure. */
import type { Token, Tokens } from "marked";
import { DIAGRAM_LANGUAGE, readLanguage } from "./language";

/** The source of a diagram; null if the block is not one, or not complete yet. */
export function readDiagram(token: Token): string | null {
  if (token.type !== "code") return null;
  const { text, lang, raw } = token as Tokens.Code;
  return readLanguage(lang) === DIAGRAM_LANGUAGE && isClosed(raw) ? text : null;
}

function isClosed(raw: string): boolean {
  const lines = raw.trimEnd().split("\n");
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1];
  const end = lines.at(-1)?.trim() ?? "";
  return fence !== undefined && lines.length > 1 && end.startsWith(fence) && new Set(end).size === 1;
}
