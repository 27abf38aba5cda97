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
export function fitting(choices: readonly Choice[], typed: string): Choice[] {
  const wanted = typed.trim().toLowerCase().split(/\s+/).filter(Boolean);
  return choices
    .map((choice, place) => ({ choice, place, rank: rankOf(choice, wanted) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank || a.place - b.place)
    .map(({ choice }) => choice);
}

function rankOf({ label, detail }: Choice, wanted: readonly string[]): number {
  const text = label.toLowerCase();
  const beside = detail.toLowerCase();
  if (!wanted.every((word) => text.includes(word) || beside.includes(word))) return 0;
  if (wanted.length === 0) return 1;
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
