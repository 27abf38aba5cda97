/** Finds the diagrams in a text: fenced Mermaid blocks that are complete. Pure. */
import type { Token, Tokens } from "marked";
import { parseBlocks, readLanguage } from "./html";

export const DIAGRAM_LANGUAGE = "mermaid";

export interface TextPart {
  isDiagram: boolean;
  text: string;
}

/** The source of a diagram; null if the block is not one, or not complete yet. */
export function readDiagram(token: Token): string | null {
  if (token.type !== "code") return null;
  const { text, lang, raw } = token as Tokens.Code;
  return readLanguage(lang) === DIAGRAM_LANGUAGE && isClosed(raw) ? text : null;
}

/** Splits a text that is shown as it was typed into diagrams and the text between them. */
export function splitDiagrams(text: string): TextPart[] {
  if (!text.includes(DIAGRAM_LANGUAGE)) return [{ isDiagram: false, text }];
  const parts: TextPart[] = [];
  for (const token of parseBlocks(text) ?? []) {
    const diagram = readDiagram(token);
    const last = parts.at(-1);
    if (diagram !== null) parts.push({ isDiagram: true, text: diagram });
    else if (last?.isDiagram === false) last.text += token.raw;
    else parts.push({ isDiagram: false, text: token.raw });
  }
  if (!parts.some((part) => part.isDiagram)) return [{ isDiagram: false, text }];
  return parts.map((part) => (part.isDiagram ? part : { ...part, text: part.text.replace(/^\n+|\n+$/g, "") }));
}

function isClosed(raw: string): boolean {
  const lines = raw.trimEnd().split("\n");
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1];
  const end = lines.at(-1)?.trim() ?? "";
  return fence !== undefined && lines.length > 1 && end.startsWith(fence) && new Set(end).size === 1;
}
