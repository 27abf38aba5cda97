/** The texts of the screens that set up the server, in the reader's language. Only those screens import them. */
import { getLanguage } from "./index";
import { settingHelpDe, settingNamesDe } from "./settings.de";
import { setupDe } from "./setup.de";
import { setupEn, type SetupWords } from "./setup.en";

const isGerman = getLanguage() === "de";

export const setupWords: SetupWords = isGerman ? setupDe : setupEn;

/** A text of the server in the reader's language, and the language that it is in: the server's own if the page has no other. */
export function translateHelp(text: string): { text: string; lang: string } {
  const german = isGerman ? settingHelpDe[text] : undefined;
  return german === undefined ? { text, lang: "en" } : { text: german, lang: "de" };
}

/** The name of a part of a key in the reader's language; undefined if the part itself is to be shown. */
export function translateKeyPart(part: string): string | undefined {
  return isGerman ? settingNamesDe[part] : undefined;
}
