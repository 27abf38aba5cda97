/**
 * Finds the translation of a text by the text itself. A key may have named gaps: `{host} does not answer.` stands for every
 * text that begins and ends like this.
 *
 * Always true: the time grows with the length of the text, not faster.
 */
export interface TextTable {
  exact: Readonly<Record<string, string>>;
  patterns: readonly Pattern[];
}

interface Pattern {
  literals: readonly string[]; // what is between the gaps, before the first and after the last
  names: readonly string[];
  translation: string;
}

const GAP = /\{(\w+)\}/;

export function makeTextTable(texts: Readonly<Record<string, string>>): TextTable {
  const patterns = Object.entries(texts).flatMap(([key, translation]): Pattern[] => {
    const parts = key.split(GAP);
    if (parts.length === 1) return [];
    return [{ literals: parts.filter((_, index) => index % 2 === 0), names: parts.filter((_, index) => index % 2 === 1), translation }];
  });
  return { exact: texts, patterns };
}

/** The translation of a text; null if the table has none. `translateGap` may translate what is in a gap; null: it does not fit. */
export function findTranslation(table: TextTable, text: string, translateGap: (name: string, value: string) => string | null): string | null {
  if (Object.hasOwn(table.exact, text)) return table.exact[text] ?? null;
  for (const { literals, names, translation } of table.patterns) {
    const values = matchLiterals(literals, text);
    if (values === null) continue;
    const found = new Map(names.map((name, index) => [name, translateGap(name, values[index] ?? "")]));
    if (![...found.values()].includes(null)) return fillGaps(translation, (name) => found.get(name) ?? undefined);
  }
  return null;
}

export function fillGaps(text: string, find: (name: string) => string | undefined): string {
  return text.replace(/\{(\w+)\}/g, (gap, name: string) => find(name) ?? gap);
}

export function listGaps(text: string): string[] {
  return [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");
}

/** What is between the literals; null if the text does not have them, in this order, from its start to its end. */
function matchLiterals(literals: readonly string[], text: string): string[] | null {
  const first = literals[0] ?? "";
  const last = literals.at(-1) ?? "";
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return null;
  const end = text.length - last.length;
  const values: string[] = [];
  let start = first.length;
  for (const literal of literals.slice(1, -1)) {
    const at = text.indexOf(literal, start);
    if (at === -1 || at + literal.length > end) return null;
    values.push(text.slice(start, at));
    start = at + literal.length;
  }
  values.push(text.slice(start, end));
  return values;
}
