/**
 * Splits a person's message into fenced code and the text around it, and that text into links and everything else. Pure.
 *
 * Always true: the time grows with the length of the message and no faster. Text outside of code is not changed.
 */
import { readLanguage } from "./language";

export type UserTextPart = { kind: "text"; text: string } | { kind: "code"; text: string; language: string };

export interface LinkedText {
  text: string;
  href: string | null; // null: not a link
}

interface Fence {
  mark: string; // "`" or "~"
  length: number;
  indent: number;
  info: string; // after the marks; only an opening fence has it
}

const FENCE = /^( {0,3})(`{3,}|~{3,})([^\n]*)$/;
// Without invisible characters, which could make an address look like another one.
const URL_CANDIDATE = /(?<![\p{L}\p{N}_])https?:\/\/[^\s<>"\p{Cc}\p{Cf}]+/giu;
const MAX_URL_CHARS = 2000;

/** A fence that is never closed is text. */
export function splitUserText(text: string): UserTextPart[] {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const fences = lines.map(readFence);
  const isClosedLater = findClosedFences(fences);
  const parts: UserTextPart[] = [];
  let textStart = 0;
  for (let index = 0; index < lines.length; index += 1) {
    const fence = fences[index];
    if (fence == null || isClosedLater[index] !== true) continue;
    const end = findClosingFence(fences, index, fence);
    addText(parts, lines.slice(textStart, index));
    const code = lines.slice(index + 1, end).map((line) => removeIndent(line, fence.indent));
    parts.push({ kind: "code", text: code.join("\n"), language: readLanguage(fence.info.trim()) });
    index = end;
    textStart = end + 1;
  }
  if (parts.length === 0) return [{ kind: "text", text }];
  addText(parts, lines.slice(textStart));
  return parts;
}

function readFence(line: string): Fence | null {
  const [, indent = "", marks = "", info = ""] = FENCE.exec(line) ?? [];
  const mark = marks.charAt(0);
  return mark === "" || (mark === "`" && info.includes("`")) ? null : { mark, length: marks.length, indent: indent.length, info };
}

function closes(fence: Fence | null, open: Fence): boolean {
  return fence?.mark === open.mark && fence.length >= open.length && fence.info.trim() === "";
}

function findClosingFence(fences: readonly (Fence | null)[], start: number, open: Fence): number {
  let end = start + 1;
  while (end < fences.length && !closes(fences[end] ?? null, open)) end += 1;
  return end;
}

/** For each line, whether a fence that opens there is closed. Known in advance, so that no line is looked at twice. */
function findClosedFences(fences: readonly (Fence | null)[]): boolean[] {
  const longest: Record<string, number> = { "`": 0, "~": 0 }; // of the fences below that can close one
  const result = new Array<boolean>(fences.length).fill(false);
  for (let index = fences.length - 1; index >= 0; index -= 1) {
    const fence = fences[index];
    if (fence == null) continue;
    const { mark, length } = fence;
    result[index] = (longest[mark] ?? 0) >= length;
    if (fence.info.trim() === "") longest[mark] = Math.max(longest[mark] ?? 0, length);
  }
  return result;
}

function removeIndent(line: string, indent: number): string {
  let start = 0;
  while (start < indent && line[start] === " ") start += 1;
  return line.slice(start);
}

/** Adds the lines between two blocks of code, without the empty ones next to the code. */
function addText(parts: UserTextPart[], lines: readonly string[]): void {
  const isFilled = (line: string) => line !== "";
  const first = parts.length === 0 ? 0 : lines.findIndex(isFilled);
  const last = lines.findLastIndex(isFilled);
  if (first >= 0 && last >= 0) parts.push({ kind: "text", text: lines.slice(first, last + 1).join("\n") });
}

/** Finds the web addresses in a text. */
export function splitLinks(text: string): LinkedText[] {
  const parts: LinkedText[] = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(URL_CANDIDATE)) {
    const url = found.slice(0, findUrlEnd(found));
    if (url.length > MAX_URL_CHARS || !URL.canParse(url)) continue;
    if (index > end) parts.push({ text: text.slice(end, index), href: null });
    parts.push({ text: url, href: url });
    end = index + url.length;
  }
  if (end < text.length || parts.length === 0) parts.push({ text: text.slice(end), href: null });
  return parts;
}

/** The end of an address, without the punctuation of the sentence around it. A bracket closes only what the address opens. */
function findUrlEnd(found: string): number {
  let unopened = found.split(")").length - found.split("(").length;
  let end = found.length;
  for (; end > 0; end -= 1) {
    const last = found.charAt(end - 1);
    if (last === ")" && unopened > 0) unopened -= 1;
    else if (!/[.,;:!?'*_~\]}”’»]/.test(last)) break;
  }
  return end;
}
