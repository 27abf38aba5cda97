/** Values of settings as text in a field, names of settings, and the errors of a change by key. Pure. */
import { ApiError, describeError } from "../../api/errors";
import { getPlatformName } from "../../format/platforms";
import { nameChoice, namePart } from "./settingNames";
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

const BY_ROLE = new Set(["models_by_role", "messages_per_minute"]); // the names in them are roles

/** What a setting is called, by the last part of its key. */
export function nameKey(key: string): string {
  const parts = splitKey(key);
  const last = parts.at(-1) ?? key;
  return BY_ROLE.has(parts.at(-2) ?? "") ? nameChoice("roles", last) : namePart(last);
}

/** The heading above settings that belong together: what is before the last part of the key, without the first parts. */
export function getHeading(key: string, skippedParts = 0): string {
  const isPlatform = (index: number) => index === 1 && key.startsWith("platforms.");
  const parts = splitKey(key).map((part, index) => (isPlatform(index) ? getPlatformName(part) : namePart(part)));
  return parts.slice(skippedParts, -1).join(" › ");
}

export function isPinned({ source }: Setting): boolean {
  return source.kind === "file" || source.kind === "environment";
}

/** Why the server refused a change, for each key that it refused; those for other keys are under the empty key. */
export function readProblems(error: unknown, shownKeys: ReadonlySet<string>): Map<string, string> {
  const problems = new Map<string, string>();
  if (!(error instanceof ApiError)) return problems;
  const listed = Array.isArray(error.facts.problems) ? (error.facts.problems as { key: string; message: string }[]) : [];
  for (const { key, message } of listed) {
    const shown = shownKeys.has(key) ? key : "";
    const text = shown === "" ? message : removeKey(key, message);
    problems.set(shown, [problems.get(shown), text].filter(Boolean).join("\n"));
  }
  if (problems.size === 0) problems.set("", describeError(error));
  return problems;
}

/** A problem without the key in front, where the field beside it says which setting is meant. */
export function removeKey(key: string, message: string): string {
  const rest = message.startsWith(key) ? message.slice(key.length) : "";
  return /^(?: [^.:]*)?: (.*)/s.exec(rest)?.[1] ?? message;
}
