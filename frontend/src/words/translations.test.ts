/** No text of the page is the same in English and German, except those that both languages share. */
import { expect, test } from "vitest";
import { de } from "./de";
import { en } from "./en";
import { linksDe } from "./links.de";
import { linksEn } from "./links.en";
import { setupDe } from "./setup.de";
import { setupEn } from "./setup.en";

const NAMES = ["ChatGPT", "Claude", "Discord", "Matrix", "Open WebUI", "OpenClaw", "Palaver", "Signal", "Slack", "Telegram", "WhatsApp", "WhatsApp Web"];
const WORDS = ["Agent", "Budget", "Budgets", "Code:", "Details", "Name", "OK", "Passkeys", "Person", "Problem", "Prompts", "Server", "System", "Terminal"];
const SAME_IN_BOTH_LANGUAGES = new Set([...NAMES, ...WORDS, "API", "Text", "Tools", "Version", "Web", "Webhook", "Code (7)", "Name (7)", "telegram:42"]);

/** Every text with the path of its key, with a number or a word in its gaps. */
function* listTexts(words: object, path = ""): Generator<[string, string]> {
  for (const [name, value] of Object.entries(words) as [string, unknown][]) {
    if (typeof value === "string") yield [path + name, value];
    else if (typeof value === "function") {
      const text = fillGaps(value as (...args: unknown[]) => unknown);
      if (typeof text === "string") yield [path + name, text];
    } else if (typeof value === "object" && value !== null) yield* listTexts(value, `${path}${name}.`);
  }
}

function fillGaps(text: (...args: unknown[]) => unknown): unknown {
  try {
    return text(...Array<number>(text.length).fill(7));
  } catch {
    return text(...Array<string>(text.length).fill("x"));
  }
}

test.each([
  ["the page", en, de],
  ["the screens that set up the server", setupEn, setupDe],
  ["linking accounts", linksEn, linksDe],
])("every text is translated: %s", (_name, english, german) => {
  const germanTexts = new Map(listTexts(german));
  const same = [...listTexts(english)].filter(([key, text]) => germanTexts.get(key) === text && /\p{L}{2}/u.test(text));
  expect(same.filter(([, text]) => !SAME_IN_BOTH_LANGUAGES.has(text))).toEqual([]);
});
