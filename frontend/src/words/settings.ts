/**
 * What the server says about settings, accounts and its health, in the reader's language. The server has the English texts; a
 * text that the page has not, such as one of an adapter from another package, is shown as it is.
 *
 * A test compares the German texts with everything that a server offers.
 */
import { fillGaps, findTranslation } from "../lib/textPatterns";
import { getLanguage } from "./index";
import { platformFieldNamesEn, settingChoicesEn, settingNamesEn } from "./settings.en";

const MAX_DEPTH = 4; // of sentences within sentences
const MAX_SENTENCES = 20; // of a text that is translated in parts
const SENTENCE_GAPS = new Set(["problem", "reason", "fix", "advice", "suggestion", "state", "notice", "how", "error"]);

const german = getLanguage() === "de" ? await import("./serverTexts.de") : null;

/** A text of the server in the reader's language; null if the page has no other than the text itself. */
export function translateKnown(text: string): string | null {
  return findText(text, MAX_DEPTH);
}

/** A text of the server in the reader's language; the text itself if the page has no other. */
export function translateText(text: string): string {
  return translateKnown(text) ?? text;
}

/** The same, with the language that the result is in. */
export function translateHelp(text: string): { text: string; lang: string } {
  const translation = translateKnown(text);
  return translation === null ? { text, lang: "en" } : { text: translation, lang: "de" };
}

function findText(text: string, depth: number): string | null {
  return depth === 0 ? null : (findWhole(text, depth) ?? findInParts(text, depth));
}

function findWhole(text: string, depth: number): string | null {
  if (german === null) return null;
  return findTranslation(german.textTable, text, (name, value) => {
    if (name === "allowed") return translateAllowedValues(value);
    if (SENTENCE_GAPS.has(name)) return findText(value, depth - 1) ?? value;
    return value.includes(". ") ? null : value; // a name, not a sentence
  });
}

/** Several texts in one, such as what a field is and where to get its value: each but the last ends with a period. */
function findInParts(text: string, depth: number): string | null {
  if (german === null) return null;
  for (let end = text.indexOf(". "), count = 0; end !== -1 && count < MAX_SENTENCES; end = text.indexOf(". ", end + 1), count++) {
    const first = findWhole(text.slice(0, end + 1), depth);
    const rest = first === null ? null : findText(text.slice(end + 2), depth);
    if (rest !== null) return `${first} ${rest}`;
  }
  return null;
}

/** What is valid for a setting, in the reader's language. */
export function translateAllowedValues(text: string): string {
  if (german === null) return text;
  return findTranslation(german.allowedTable, text, (name, value) => (name === "allowed" ? translateAllowedValues(value) : value)) ?? text;
}

/** The name of a part of a key in the reader's language; undefined if the part itself is to be shown. */
export function translateKeyPart(part: string): string | undefined {
  return (german?.settingNamesDe ?? settingNamesEn)[part];
}

/** The name of a setting of an account in the reader's language. */
export function translateFieldName(name: string, label: string): string {
  return (german?.platformFieldNamesDe ?? platformFieldNamesEn)[name] ?? label;
}

/** A value that can be chosen, in the reader's language; `part` is the last part of the setting's key. */
export function translateChoice(part: string, value: string): string {
  return (german?.settingChoicesDe ?? settingChoicesEn)[part]?.[value] ?? value;
}

interface Finding {
  code: string;
  subject: string;
  text: string;
  fix: string | null;
  facts: Readonly<Record<string, string>>;
}

/** A finding of the server's checks, in the reader's language. */
export function translateFinding(finding: Finding): Pick<Finding, "subject" | "text" | "fix"> {
  const { subject, facts } = finding;
  const texts = german !== null && Object.hasOwn(german.findingsDe, finding.code) ? german.findingsDe[finding.code] : undefined;
  if (german === null || texts === undefined) return finding;
  const fill = (text: string) => fillGaps(text, (name) => (facts[name] === undefined ? undefined : translateText(facts[name])));
  return { subject: german.findingSubjectsDe[subject] ?? subject, text: fill(texts.text), fix: finding.fix === null ? null : fill(texts.fix ?? finding.fix) };
}
