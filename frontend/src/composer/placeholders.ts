/** Placeholders of saved prompts, such as `{{topic}}`. Pure. */
const PLACEHOLDER = /\{\{([^{}\n]{1,60})\}\}/g;

/** The names of the placeholders, each once, in order. */
export function listPlaceholders(text: string): string[] {
  return [...new Set([...text.matchAll(PLACEHOLDER)].map(([, name]) => (name ?? "").trim()))].filter((name) => name !== "");
}

/** The text with values for its placeholders. One without a value stays as it is. */
export function fillPlaceholders(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(PLACEHOLDER, (whole, name: string) => values.get(name.trim()) ?? whole);
}
