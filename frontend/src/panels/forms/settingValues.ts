/** Values of settings as text in a field, names of settings, and the errors of a change by key. Pure. */
import { ApiError } from "../../api/errors";
import { translateKeyPart } from "../../words/setup";
import type { Setting, SettingTemplate } from "./settingsApi";

/** What a form changes: the new value of a setting, or `RESET` to go back to the default. */
export type Draft = ReadonlyMap<string, unknown>;
export const RESET = Symbol("reset");

type FieldShape = Pick<SettingTemplate, "kind" | "is_list">;

/** The text of a value in a field. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(String).join("\n");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The value that a text in a field means. What is not valid is sent as it is: the server says what is wrong. */
export function parseValue(text: string, { kind, is_list }: FieldShape): unknown {
  if (is_list) return text.split("\n").flatMap((line) => (line.trim() === "" ? [] : [parseItem(line.trim(), kind)]));
  return text.trim() === "" ? null : parseItem(kind === "long_text" ? text : text.trim(), kind);
}

function parseItem(text: string, kind: string): unknown {
  if ((kind === "integer" || kind === "number") && Number.isFinite(Number(text))) return Number(text);
  if (kind === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

/** A key without quotes, in parts: `prices."openai:gpt-5.4".input` has three. */
export function splitKey(key: string): string[] {
  return [...key.matchAll(/"((?:[^"\\]|\\.)*)"|[^."]+/g)].map(([part, quoted]) => quoted ?? part);
}

export function quotePart(part: string): string {
  return /^[^."\s]+$/.test(part) ? part : `"${part.replace(/(["\\])/g, "\\$1")}"`;
}

/** A name for people, from the last part of a key: `idle_minutes` is `Idle minutes`. */
export function nameKey(key: string): string {
  const last = splitKey(key).at(-1) ?? key;
  const translated = translateKeyPart(last);
  if (translated !== undefined) return translated;
  const text = last.replaceAll("_", " ");
  const name = text.charAt(0).toUpperCase() + text.slice(1);
  return name.replace(/\b(api|url|mb|usd|dm|pii)\b/gi, (word) => word.toUpperCase());
}

/** The heading above settings that belong together: everything before the last part of the key. */
export function getHeading(key: string): string {
  return splitKey(key).slice(0, -1).map((part) => translateKeyPart(part) ?? part.replaceAll("_", " ")).join(" › ");
}

export function isPinned({ source }: Setting): boolean {
  return source.kind === "file" || source.kind === "environment";
}

/** The server's words for each key that it refused; those for other keys are under the empty key. */
export function readProblems(error: unknown, shownKeys: ReadonlySet<string>): Map<string, string> {
  const problems = new Map<string, string>();
  if (!(error instanceof ApiError)) return problems;
  const listed = Array.isArray(error.facts.problems) ? (error.facts.problems as { key: string; message: string }[]) : [];
  for (const { key, message } of listed) {
    const shown = shownKeys.has(key) ? key : "";
    const text = shown !== "" && message.startsWith(`${key}: `) ? message.slice(key.length + 2) : message;
    problems.set(shown, [problems.get(shown), text].filter(Boolean).join("\n"));
  }
  if (problems.size === 0) problems.set("", error.message);
  return problems;
}
