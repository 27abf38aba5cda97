/** Why something was not done, in the reader's language where the page has the words, and in the server's otherwise. */
import { ApiError } from "../api/client";
import type { Receipt } from "../api/types";
import { bytes } from "../lib/numbers";
import { locale, words, type Refusals, type Told } from "./index";

/** Why a request failed. */
export function whyNot(error: unknown): string {
  return error instanceof ApiError ? told(error.code, error.facts, error.message) : words.unreachable;
}

/** Why a message or a command was not taken. */
export function whyRefused({ facts, reply }: Receipt): string {
  return told("refused", facts, reply ?? "");
}

function told(code: string, facts: Readonly<Record<string, unknown>>, otherwise: string): string {
  const known: Refusals = words.refusals;
  const name = code === "refused" && typeof facts.error === "string" ? facts.error : code;
  return (Object.hasOwn(known, name) ? known[name]?.(written(facts)) : null) ?? otherwise;
}

const BYTES = "most"; // what the server calls the largest size that it takes

function written(facts: Readonly<Record<string, unknown>>): Told {
  const texts = Object.entries(facts).flatMap(([name, value]): [string, string][] => {
    if (typeof value === "string") return [[name, value]];
    if (typeof value !== "number") return [];
    return [[name, name === BYTES ? bytes(value) : new Intl.NumberFormat(locale()).format(value)]];
  });
  return Object.fromEntries(texts);
}
