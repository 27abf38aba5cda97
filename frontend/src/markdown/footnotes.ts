/** Footnotes in Markdown: `[^1]` refers to `[^1]: …`. The notes are shown at the end of their message. */
import type { MarkedExtension, Token, Tokens } from "marked";
import { words } from "../words";
import { escapeHtml } from "./escape";

export interface Footnote extends Tokens.Generic {
  label: string;
  tokens: Token[];
}

/** The numbers of a message's notes by their label. `prefix` makes the ids unique on the page. */
export interface FootnoteNumbers {
  prefix: string;
  numbers: ReadonlyMap<string, number>;
}

export const NO_FOOTNOTES: FootnoteNumbers = { prefix: "", numbers: new Map() };

const DEFINITION = /^ {0,3}\[\^([^\]\s]{1,64})\]:/;
const DEFINITION_START = /\n {0,3}\[\^[^\]\s]{1,64}\]:/;
const REFERENCE = /^\[\^([^\]\s]{1,64})\](?!\()/;
const OTHER_BLOCK = /^ {0,3}(?:[-*+>|#]|\d{1,9}[.)]|`{3}|~{3}|\[\^|<)/; // ends the note's paragraph
const MAX_INDENT = 4; // of the lines of a note

let current = NO_FOOTNOTES; // of the message that is rendered

/** Calls `render`; references in it are links to these notes. A reference to a note that is missing stays text. */
export function renderWithFootnotes<Result>(footnotes: FootnoteNumbers, render: () => Result): Result {
  current = footnotes;
  try {
    return render();
  } finally {
    current = NO_FOOTNOTES;
  }
}

export const footnoteExtension: MarkedExtension = {
  extensions: [
    {
      name: "footnote",
      level: "block",
      start: (source) => {
        const position = source.search(DEFINITION_START);
        return position === -1 ? undefined : position;
      },
      tokenizer(source) {
        const definition = DEFINITION.exec(source);
        if (definition === null) return undefined;
        const raw = source.slice(0, findNoteEnd(source));
        const content = raw.slice(definition[0].length).split("\n").map(removeIndent).join("\n").trim();
        return { type: "footnote", raw, label: definition[1], tokens: this.lexer.blockTokens(content, []) };
      },
      renderer: () => "", // the message renders it at its end
    },
    {
      name: "footnoteReference",
      level: "inline",
      tokenizer(source) {
        const reference = REFERENCE.exec(source);
        return reference === null ? undefined : { type: "footnoteReference", raw: reference[0], label: reference[1] };
      },
      renderer: ({ raw, label }) => renderReference(raw, label as string),
    },
  ],
};

/** A note goes on in the lines of its paragraph, and in paragraphs that are indented. */
function findNoteEnd(source: string): number {
  let end = findLineEnd(source, 0);
  let isSameParagraph = true;
  for (let start = end + 1; start < source.length; ) {
    const lineEnd = findLineEnd(source, start);
    const line = source.slice(start, lineEnd);
    start = lineEnd + 1;
    if (line.trim() === "") isSameParagraph = false;
    else if (DEFINITION.test(line) || (!/^(?: {2}|\t)/.test(line) && (!isSameParagraph || OTHER_BLOCK.test(line)))) break;
    else [end, isSameParagraph] = [lineEnd, true];
  }
  return end;
}

function findLineEnd(source: string, start: number): number {
  const end = source.indexOf("\n", start);
  return end === -1 ? source.length : end;
}

function removeIndent(line: string): string {
  const spaces = /^(?:\t| +)/.exec(line)?.[0] ?? "";
  return line.slice(Math.min(spaces.length, MAX_INDENT));
}

function renderReference(raw: string, label: string): string {
  const number = current.numbers.get(label);
  if (number === undefined) return escapeHtml(raw);
  return `<sup><a class="footnote-link" href="#${getFootnoteId(current.prefix, number)}" aria-label="${escapeHtml(words.footnote(number))}">${number}</a></sup>`;
}

export function getFootnoteId(prefix: string, number: number): string {
  return `${prefix}-note-${number}`;
}

/** Numbers notes in the order of their definitions. If two have the same label, references lead to the first. */
export function numberFootnotes(labels: readonly string[], prefix: string): FootnoteNumbers {
  const numbers = new Map<string, number>();
  labels.forEach((label, index) => {
    if (!numbers.has(label)) numbers.set(label, index + 1);
  });
  return { prefix, numbers };
}
