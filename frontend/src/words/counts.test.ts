/** Texts with a number use the singular for one. */
import { expect, test } from "vitest";
import { de } from "./de";
import { en } from "./en";

const FIXED_NUMBERS = new Set(["tooManyFiles", "usageDays", "tokenLifetimeDays", "limit_reached", "invalid_name", "invalid_title", "contextFill"]); // these are never one
const PLURALS = {
  en: /\b1 (?:[a-z]+ )?(?:messages|minutes|hours|days|answers|conversations|results|others|people|exchanges|calls|tokens|characters|files)\b/,
  de: /\b1 (?:[a-zäöü-]+ )?(?:Nachrichten|Minuten|Tage|Antworten|Chats|Ergebnisse|Personen|Austausche|Schritte|Stunden|Dateien)\b/,
};

function* listTexts(words: object, path = ""): Generator<[string, string]> {
  for (const [name, value] of Object.entries(words) as [string, unknown][]) {
    if (FIXED_NUMBERS.has(name)) continue;
    if (isFunction(value)) {
      const isError = /^(errors|failures|notices)\.$/.test(path);
      const text = isError ? value({ limit: "1", count: "1", seconds: "1" }) : value(...Array<string | number>(value.length).fill(takesNumber(value) ? 1 : "1"));
      if (typeof text === "string") yield [path + name, text];
    } else if (typeof value === "object" && value !== null) {
      yield* listTexts(value, `${path}${name}.`);
    }
  }
}

function isFunction(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === "function";
}

/** Whether a function gets its number before it is formatted. */
function takesNumber(value: (...args: unknown[]) => unknown): boolean {
  return value.toString().includes("=== 1");
}

test.each([
  ["en", en],
  ["de", de],
] as const)("texts with one of something have no plural: %s", (language, words) => {
  const wrong = [...listTexts(words)].filter(([, text]) => PLURALS[language].test(text));
  expect(wrong).toEqual([]);
});
