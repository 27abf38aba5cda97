/** The choices of the palette, and which of them match the typed text. Pure. */

export interface Choice {
  id: string;
  group: string;
  label: string;
  detail: string;
  act: () => void;
  preload?: () => void; // called when the choice is highlighted
}

/** The matching items, best first; all items if nothing is typed. */
export function findMatches<T>(
  items: readonly T[],
  typed: string,
  getTexts: (item: T) => readonly [label: string, detail: string],
): T[] {
  const terms = foldText(typed).split(/\s+/).filter(Boolean);
  if (terms.length === 0) return [...items];
  return items
    .map((item, index) => ({ item, index, rank: rankMatch(getTexts(item), terms) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank || a.index - b.index)
    .map(({ item }) => item);
}

/** Removes accents and case, as the search in messages does: people type without accents and still mean them. */
function foldText(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

function rankMatch([label, detail]: readonly [string, string], terms: readonly string[]): number {
  const foldedLabel = foldText(label);
  const foldedDetail = foldText(detail);
  if (!terms.every((term) => foldedLabel.includes(term) || foldedDetail.includes(term))) return 0;
  const [first = ""] = terms;
  if (foldedLabel.startsWith(first)) return 3;
  return terms.every((term) => foldedLabel.includes(term)) ? 2 : 1;
}

/** Groups choices under their headings, in the order in which the headings first appear. */
export function groupChoices(choices: readonly Choice[]): [string, Choice[]][] {
  const groups = new Map<string, Choice[]>();
  for (const choice of choices) groups.set(choice.group, [...(groups.get(choice.group) ?? []), choice]);
  return [...groups];
}
