/** Texts for errors that are rare, in the reader's language. They are loaded when the first error comes. English is the server's own. */
import { getLanguage, type ErrorTexts } from "./index";

interface RareErrors {
  rareErrorsDe: ErrorTexts; // by code
  translateMessage: (message: string) => string | null;
}

let loaded: RareErrors | null = null;

/** Loads the texts. Without a connection there are none: then the server's own message is shown. */
export async function loadRareErrors(): Promise<void> {
  if (loaded === null && getLanguage() === "de") loaded = await import("./rareErrors.de").catch(() => null);
}

export function getRareErrors(): ErrorTexts {
  return loaded?.rareErrorsDe ?? {};
}

/** The translation of a message of the server; null if there is none. */
export function translateMessage(message: string): string | null {
  return loaded?.translateMessage(message) ?? null;
}
