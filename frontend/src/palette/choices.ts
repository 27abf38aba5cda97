/** What the palette offers, and which of it fits what was typed. Pure. */

export interface Choice {
  id: string;
  group: string;
  label: string;
  detail: string;
  act: () => void;
  point?: () => void; // somebody points at it, and may take it next
}

/** Those that fit, best first; all of them where nothing was typed. */
export function fitting<T>(things: readonly T[], typed: string, textOf: (thing: T) => readonly [label: string, detail: string]): T[] {
  const wanted = folded(typed).split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return [...things];
  return things
    .map((thing, place) => ({ thing, place, rank: rankOf(textOf(thing), wanted) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank || a.place - b.place)
    .map(({ thing }) => thing);
}

/** As words are folded for the search in messages: who types without accents means them too. */
function folded(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

function rankOf([label, detail]: readonly [string, string], wanted: readonly string[]): number {
  const text = folded(label);
  const beside = folded(detail);
  if (!wanted.every((word) => text.includes(word) || beside.includes(word))) return 0;
  const first = wanted[0] ?? "";
  if (text.startsWith(first)) return 3;
  return wanted.every((word) => text.includes(word)) ? 2 : 1;
}

/** Choices under their headings, in the order in which the headings first come. */
export function byGroup(choices: readonly Choice[]): [string, Choice[]][] {
  const groups = new Map<string, Choice[]>();
  for (const choice of choices) groups.set(choice.group, [...(groups.get(choice.group) ?? []), choice]);
  return [...groups];
}
