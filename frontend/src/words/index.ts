/**
 * The texts of the page, in the reader's language. They are loaded before anything is shown, and no other
 * language is.
 *
 * Always true: a language file holds texts and imports nothing of the page. The page waits for it, so it must not wait for
 * the page.
 */
import { storage } from "../lib/storage";
import type { Words } from "./en";

export type { Words };
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

/** The details that the server names in an error, formatted for the reader's language. */
export type ErrorFacts = Readonly<Partial<Record<string, string>>>;
export type ErrorTexts = Record<string, (facts: ErrorFacts) => string | null>; // by error code; null: the server's own message is shown

const LOADERS: Record<Language, () => Promise<Words>> = {
  en: async () => (await import("./en")).en,
  de: async () => (await import("./de")).de,
};

/** Set once, before the page is rendered for the first time. */
export let words: Words;
let currentLanguage: Language = "en";

export function getLanguage(): Language {
  return currentLanguage;
}

/** The locale for numbers and times: the browser's own one if it fits the chosen language, such as `en-GB` for English. */
export function getLocale(): string {
  return navigator.languages.find((locale) => locale.startsWith(currentLanguage)) ?? currentLanguage;
}

export async function loadWords(): Promise<void> {
  currentLanguage = detectLanguage();
  words = await LOADERS[currentLanguage]();
  document.documentElement.lang = currentLanguage;
}

/** `theme.js` does the same, to load the file of the language in advance. */
function detectLanguage(): Language {
  const candidates = [storage.get("language"), ...navigator.languages].map((locale) => locale?.slice(0, 2));
  return candidates.find((language): language is Language => language !== undefined && language in LANGUAGES) ?? "en";
}
