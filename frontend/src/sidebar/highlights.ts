/** Splits a text into highlighted and other parts. Pure. */

interface HighlightPart {
  text: string;
  isHighlighted: boolean;
}

/** `marks` are pairs of start and end, counted as Python counts: a character outside the basic plane is one. */
export function splitHighlights(text: string, marks: readonly (readonly number[])[]): HighlightPart[] {
  const characters = Array.from(text);
  const parts: HighlightPart[] = [];
  let end = 0;
  for (const [from = 0, stop = 0] of marks) {
    if (from > end) parts.push({ text: characters.slice(end, from).join(""), isHighlighted: false });
    parts.push({ text: characters.slice(Math.max(from, end), stop).join(""), isHighlighted: true });
    end = Math.max(end, stop);
  }
  if (end < characters.length) parts.push({ text: characters.slice(end).join(""), isHighlighted: false });
  return parts;
}
