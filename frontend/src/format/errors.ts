/** The server's errors in the reader's language, if the page has a text for their code. */
import { getLocale, words, type ErrorFacts, type ErrorTexts } from "../words";
import { formatBytes } from "./numbers";

const SIZE_FACT = "limit_bytes"; // the fact in which the server names the largest size it accepts

/** Explains an error by its code. Without a text for the code, returns `fallback`, the server's own message. */
export function describeErrorCode(code: string, facts: Readonly<Record<string, unknown>>, fallback: string): string {
  const texts: ErrorTexts = words.errors;
  const name = code === "request_rejected" && typeof facts.error === "string" ? facts.error : code;
  return (Object.hasOwn(texts, name) ? texts[name]?.(formatFacts(facts)) : null) ?? fallback;
}

function formatFacts(facts: Readonly<Record<string, unknown>>): ErrorFacts {
  const texts = Object.entries(facts).flatMap(([name, value]): [string, string][] => {
    if (typeof value === "string") return [[name, value]];
    if (typeof value !== "number") return [];
    return [[name, name === SIZE_FACT ? formatBytes(value) : new Intl.NumberFormat(getLocale()).format(value)]];
  });
  return Object.fromEntries(texts);
}
