/** Finds the pages that a step of a platform names, so that a person can open them. Pure. */

export interface StepPart {
  text: string;
  url: string | null; // null: text between links
}

// Pages without a scheme, as the steps name them, and accounts on Telegram.
const PAGE = /(@BotFather|(?:[a-z]+\.)+com(?:\/[a-z/]*[a-z])?)/;

export function findStepLinks(text: string): StepPart[] {
  return text.split(PAGE).map((part, index) => ({ text: part, url: index % 2 === 0 ? null : findUrl(part) }));
}

const findUrl = (name: string) => (name.startsWith("@") ? `https://t.me/${name.slice(1)}` : `https://${name}`);
