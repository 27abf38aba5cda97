/**
 * The words of the page, in the reader's language. They are chosen before anything is shown.
 *
 * Always true: a language brings nothing but its words, for the page waits for it and it must not wait for the page.
 */
import { recall } from "../lib/keep";
import { en, type Words } from "./en";

export type { Words };
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

/** What the server names where it refuses something, as the reader's language writes it. */
export type Told = Readonly<Partial<Record<string, string>>>;
export type Refusals = Record<string, (facts: Told) => string | null>; // by code; null: in the server's own words

/** Changes once, before the first page is drawn. */
export let words: Words = en;
let chosen: Language = "en";

export function language(): Language {
  return chosen;
}

/** How numbers and times are written: as the browser has it, where it speaks the language that was chosen. */
export function locale(): string {
  return navigator.languages.find((each) => each.startsWith(chosen)) ?? chosen;
}

export async function chooseWords(): Promise<void> {
  chosen = wanted();
  if (chosen === "de") words = (await import("./de")).de;
  document.documentElement.lang = chosen;
}

function wanted(): Language {
  const asked = [recall("language"), ...navigator.languages].map((each) => each?.slice(0, 2));
  return asked.find((each): each is Language => each !== undefined && each in LANGUAGES) ?? "en";
}
